//! Known answers of an independent implementation.
#![allow(clippy::unwrap_used)]

mod common;

use common::{bytes, judged, load, selection_cases};
use ragaudit_arguments::Error;
use ragaudit_arguments::generators::{self, Generator, LISTS};
use ragaudit_arguments::selection;
use ragaudit_arguments::transcript::Transcript;

const SELECTION: [(&str, usize); 5] = [
    ("selection", 34),
    ("selection_edge", 34),
    ("selection_noncanonical", 28),
    ("selection_b4095", 6),
    ("selection_ties", 25),
];

#[test]
fn generators_are_the_known_ones() {
    let vectors = load("generators_and_transcript");
    let expected = vectors["generators"].as_array().unwrap();
    assert_eq!(expected.len(), 24);
    for entry in expected {
        let list = LISTS.into_iter().find(|list| list.name() == entry["list"]).unwrap();
        let index = entry["index"].as_u64().unwrap();
        let encoded = bytes(&entry["point"]);
        assert_eq!(generators::point(list, index).compress().as_bytes()[..], encoded);
        assert_eq!(
            generators::derive(Generator::new(list, index)).compress().as_bytes()[..],
            encoded
        );
    }
}

#[test]
fn transcript_states_and_challenges_are_the_known_ones() {
    let vectors = load("generators_and_transcript");
    let mut transcript = Transcript::new("never used");
    for step in vectors["transcript"].as_array().unwrap() {
        let tag = step["tag"].as_str().unwrap_or_default();
        match step["op"].as_str().unwrap() {
            "init" => transcript = Transcript::new(step["argument"].as_str().unwrap()),
            "absorb" => transcript.absorb(tag, &bytes(&step["message"])),
            "scalar" => {
                assert_eq!(transcript.scalar(tag).to_bytes()[..], bytes(&step["value"]));
            }
            "bits" => {
                let count = step["n"].as_u64().unwrap() as usize;
                let packed = transcript.bits(tag, count);
                let bits: Vec<u8> = (0..count).map(|i| (packed[i >> 3] >> (i & 7)) & 1).collect();
                assert_eq!(bits, common::integers::<u8>(&step["value"]));
            }
            other => panic!("unknown step {other}"),
        }
        assert_eq!(transcript.state()[..], bytes(&step["state"]));
    }
}

#[test]
fn selection_proofs_are_judged_as_known() {
    for (file, count) in SELECTION {
        let cases = selection_cases(file);
        assert_eq!(cases.len(), count);
        for case in cases {
            let result = selection::verify(&case.instance(), &case.proof);
            assert_eq!(result.is_ok(), case.accept, "{file} {}: {result:?}", case.name);
        }
    }
}

#[test]
fn index_proofs_are_judged_as_known() {
    for (file, count) in [("index_v2", 14), ("index_noncanonical", 22)] {
        let vectors = load(file);
        let cases = vectors["cases"].as_array().unwrap();
        assert_eq!(cases.len(), count);
        for case in cases {
            let result = judged(case);
            assert_eq!(result.is_ok(), case["expect"] == "accept", "{}: {result:?}", case["name"]);
        }
    }
}

/// Honest proofs of index/v1 too: it says less, and no proof carries the name of its argument.
#[test]
fn proofs_of_the_first_index_argument_are_rejected() {
    for case in load("index_v1")["cases"].as_array().unwrap() {
        assert!(matches!(judged(case), Err(Error::Rejected(_))), "{}", case["name"]);
    }
}

/// Rows with entries of 10^19: accepted by v1, by v2 with a wrong weight or a generator too many.
#[test]
fn forged_index_proofs_are_rejected() {
    let mut forged =
        vec![load("index_offset_forgery"), load("index_v2_row_junk_forgery")["case"].clone()];
    forged.extend(load("index_forgeries")["cases"].as_array().unwrap().clone());
    assert_eq!(forged.len(), 5);
    for case in forged {
        let result = judged(&case);
        let equation =
            Error::Rejected("index/v2: proof: the verification equation does not hold".into());
        assert_eq!(result, Err(equation), "{}", case["name"]);
    }
}
