//! One accepted byte string per element.
#![allow(clippy::unwrap_used)]

mod common;

use common::{bytes, judged, load, selection_cases};
use ragaudit_adversary::honest::Random;
use ragaudit_arguments::encoding::{Reader, decode_point, decode_scalar};
use ragaudit_arguments::generators::{self, List};
use ragaudit_arguments::{Error, Result, selection};

/// 2^255 - 19, little endian.
fn modulus() -> [u8; 32] {
    let mut bytes = [0xff; 32];
    (bytes[0], bytes[31]) = (0xed, 0x7f);
    bytes
}

/// p - s.
fn negated(s: &[u8]) -> [u8; 32] {
    let mut borrow = 0i16;
    let difference = |(p, s): (u8, &u8)| {
        let byte = i16::from(p) - i16::from(*s) + borrow;
        borrow = byte >> 8;
        byte as u8
    };
    let bytes: Vec<u8> = modulus().into_iter().zip(s).map(difference).collect();
    bytes.try_into().unwrap()
}

/// s + 2^255.
fn with_top_bit(mut s: [u8; 32]) -> [u8; 32] {
    s[31] |= 0x80;
    s
}

fn assert_refused(bytes: &[u8]) {
    let result = decode_point(bytes, "point").map(|_| ());
    assert!(matches!(result, Err(Error::Rejected(_))), "{} is decoded", hex::encode(bytes));
}

/// The element of `s`, and no other spelling of it.
fn assert_one_encoding(s: [u8; 32]) {
    let point = decode_point(&s, "point").unwrap();
    assert_eq!((point.bytes, point.element.compress().to_bytes()), (s, s));
    assert_refused(&with_top_bit(s));
    if s != [0; 32] {
        assert_refused(&negated(&s));
        assert_refused(&with_top_bit(negated(&s)));
    }
}

#[test]
fn points_are_those_of_the_standard() {
    let vectors = load("rfc9496");
    let multiples = vectors["multiples"].as_array().unwrap();
    assert_eq!(multiples.len(), 16);
    for multiple in multiples {
        assert_one_encoding(bytes(multiple).try_into().unwrap());
    }
    let refused = vectors["refused"].as_object().unwrap();
    let refused: Vec<_> = refused.values().flat_map(|list| list.as_array().unwrap()).collect();
    assert_eq!(refused.len(), 29);
    refused.into_iter().for_each(|encoding| assert_refused(&bytes(encoding)));
    assert_refused(&modulus());
}

#[test]
fn every_element_has_one_encoding() {
    for i in 0..200 {
        assert_one_encoding(generators::point(List::A, i).compress().to_bytes());
    }
}

#[test]
fn elements_of_another_length_are_refused() {
    for length in [0, 1, 31, 33, 64] {
        assert_refused(&vec![0; length]);
        assert!(decode_scalar(&vec![0; length], "scalar").is_err());
    }
}

#[test]
fn scalars_are_below_the_order() {
    let one_less = (-curve25519_dalek::Scalar::ONE).to_bytes();
    assert_eq!(decode_scalar(&one_less, "scalar").unwrap().to_bytes(), one_less);
    let mut order = one_less;
    order[0] += 1;
    for refused in [order, [0xff; 32], with_top_bit([0; 32])] {
        assert!(decode_scalar(&refused, "scalar").is_err());
    }
    let mut random = Random(77);
    for _ in 0..100 {
        let scalar = random.scalar();
        assert_eq!(decode_scalar(scalar.as_bytes(), "scalar").unwrap(), scalar);
        assert!(decode_scalar(&with_top_bit(scalar.to_bytes()), "scalar").is_err());
    }
}

/// Their transcript ran over the bytes sent: nothing but the decoder refuses them.
#[test]
fn proofs_over_other_spellings_are_refused_by_the_decoder() {
    let mut refused = 0;
    let mut assert_malformed = |name: &str, accept: bool, result: Result<()>| {
        if accept {
            return result.unwrap();
        }
        let Err(Error::Rejected(reason)) = result else { panic!("{name} is accepted") };
        assert!(
            reason.contains("canonical") || reason.contains("not below the group order"),
            "{name}: {reason}",
        );
        refused += 1;
    };
    for case in selection_cases("selection_noncanonical") {
        let result = selection::verify(&case.instance(), &case.proof);
        assert_malformed(&case.name, case.accept, result);
    }
    for case in load("index_noncanonical")["cases"].as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        assert_malformed(name, case["expect"] == "accept", judged(case));
    }
    assert_eq!(refused, 27 + 21);
}

#[test]
fn elements_left_over_are_refused() {
    let bytes = [0; 64];
    let mut reader = Reader::new(&bytes, 2).unwrap();
    reader.point().unwrap();
    assert!(reader.finish().is_err());
    assert!(Reader::new(&bytes, 1).is_err());
    assert!(Reader::new(&bytes, 3).is_err());
}
