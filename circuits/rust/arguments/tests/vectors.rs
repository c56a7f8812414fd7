//! Known answers of an independent implementation.
#![allow(clippy::unwrap_used)]

mod common;

use common::{bytes, load, selection_cases};
use ragaudit_arguments::generators::{self, Generator, LISTS};
use ragaudit_arguments::index::{self, Statement};
use ragaudit_arguments::progress::Silent;
use ragaudit_arguments::selection;
use ragaudit_arguments::transcript::Transcript;

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
    let cases: Vec<_> =
        ["selection", "selection_edge"].iter().flat_map(|file| selection_cases(file)).collect();
    assert_eq!(cases.len(), 68);
    for case in cases {
        let result = selection::verify(&case.instance(), &case.proof);
        assert_eq!(result.is_ok(), case.accept, "{}: {result:?}", case.name);
    }
}

#[test]
fn index_proofs_are_judged_as_known() {
    let vectors = load("index");
    let cases = vectors["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 5);
    for case in cases {
        let commitments = common::concatenated(&case["C"]);
        let statement = Statement::new(
            common::array(&case["context"]),
            case["N"].as_u64().unwrap(),
            case["d"].as_u64().unwrap(),
            case["B2"].as_u64().unwrap().try_into().unwrap(),
            &commitments,
        )
        .unwrap();
        let result = index::verify(&statement, &bytes(&case["proof"]), &Silent);
        assert_eq!(result.is_ok(), case["expect"] == "accept", "{}: {result:?}", case["name"]);
    }
}
