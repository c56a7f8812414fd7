//! Changes to honest arguments, chosen by bytes: a fuzzer's or those of a generator.

use curve25519_dalek::ristretto::{CompressedRistretto, RistrettoPoint};
use curve25519_dalek::scalar::Scalar;
use ragaudit_arguments::SQUARED_NORM;
use ragaudit_arguments::generators::{self, List};
use ragaudit_arguments::selection::Ties;

use crate::cases::{Argument, IndexCase, SelectionCase};

/// Bytes of an element of a proof.
const ELEMENT: usize = 32;
/// Changes made to one argument at most.
const MOST_CHANGES: usize = 4;

/// l, the order of the group.
const ORDER: [u8; 32] = [
    0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
];
/// p = 2^255 - 19, the modulus of the curve's coordinates.
const PRIME: [u8; 32] = {
    let mut prime = [0xff; 32];
    prime[0] = 0xed;
    prime[31] = 0x7f;
    prime
};

/// 32 bytes at the ends of what is decoded: 0, 1, l - 1, l, p - 1, p, all ones.
pub fn special_encodings() -> [[u8; ELEMENT]; 7] {
    let mut one = [0; ELEMENT];
    one[0] = 1;
    let zero = [0; ELEMENT];
    [zero, one, difference(&ORDER, &one), ORDER, difference(&PRIME, &one), PRIME, [0xff; ELEMENT]]
}

/// Choices read from bytes; zero when these are used up.
pub struct Choices<'a> {
    bytes: &'a [u8],
}

impl<'a> Choices<'a> {
    /// Choices made by these bytes.
    pub fn new(bytes: &'a [u8]) -> Self {
        Choices { bytes }
    }

    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.bytes.split_first() else { return 0 };
        self.bytes = rest;
        *first
    }

    /// A number below `bound`, which is positive and far below 2^16.
    pub fn below(&mut self, bound: usize) -> usize {
        usize::from(u16::from_le_bytes([self.byte(), self.byte()])) % bound
    }

    /// The next 32 bytes.
    pub fn element(&mut self) -> [u8; ELEMENT] {
        std::array::from_fn(|_| self.byte())
    }

    /// A difference: small, at the margin of U, or of any size.
    pub(crate) fn difference(&mut self) -> i64 {
        let margin = 2 * i64::from(SQUARED_NORM);
        match self.below(5) {
            0 => 1,
            1 => -1,
            2 => margin,
            3 => -margin - 1,
            _ => i64::from_le_bytes(std::array::from_fn(|_| self.byte())),
        }
    }
}

/// An argument whose statement can be changed.
pub trait Mutable: Argument {
    /// Changes one part of the statement.
    fn change_statement(&mut self, choices: &mut Choices);
}

/// One of these honest arguments with a few changes.
pub fn mutate<A: Mutable>(honest: &[A], choices: &mut Choices) -> A {
    let mut changed = honest[choices.below(honest.len())].clone();
    for _ in 0..=choices.below(MOST_CHANGES) {
        if choices.below(3) == 0 {
            changed.change_statement(choices);
        } else {
            let mut donor = honest[choices.below(honest.len())].clone();
            change_proof(changed.proof(), donor.proof(), choices);
        }
    }
    changed
}

/// Changes a proof in one way. `donor` is another one.
fn change_proof(proof: &mut Vec<u8>, donor: &[u8], choices: &mut Choices) {
    let elements = proof.len() / ELEMENT;
    if elements == 0 {
        proof.extend_from_slice(donor);
        return;
    }
    let (first, second) = (choices.below(elements), choices.below(elements));
    match choices.below(8) {
        0 => proof.truncate(choices.below(proof.len() + 1)),
        1 => proof.extend_from_slice(&choices.element()[..1 + choices.byte() as usize % 32]),
        2 => {
            // The start of one proof, the end of another.
            proof.truncate(ELEMENT * first);
            proof.extend_from_slice(donor.get(ELEMENT * first..).unwrap_or_default());
        }
        3 => {
            let from = ELEMENT * choices.below((donor.len() / ELEMENT).max(1));
            if let Some(element) = donor.get(from..from + ELEMENT) {
                proof[ELEMENT * first..][..ELEMENT].copy_from_slice(element);
            }
        }
        4 => {
            let element: Vec<u8> = proof.drain(ELEMENT * first..ELEMENT * (first + 1)).collect();
            if choices.byte() & 1 == 0 {
                let place = ELEMENT * second.min(proof.len() / ELEMENT);
                proof.splice(place..place, element);
            }
        }
        5 => {
            for byte in 0..ELEMENT {
                proof.swap(ELEMENT * first + byte, ELEMENT * second + byte);
            }
        }
        _ => change_element(&mut proof[ELEMENT * first..][..ELEMENT], choices),
    }
}

/// Changes an encoded point or scalar.
pub(crate) fn change_element(element: &mut [u8], choices: &mut Choices) {
    let old: [u8; ELEMENT] = std::array::from_fn(|i| element[i]);
    let scalar: Option<Scalar> = Scalar::from_canonical_bytes(old).into();
    let point = CompressedRistretto(old).decompress();
    let on_scalar =
        |change: &dyn Fn(Scalar) -> Scalar| scalar.map_or(old, |s| change(s).to_bytes());
    let on_point = |change: &dyn Fn(RistrettoPoint) -> RistrettoPoint| {
        point.map_or(old, |point| change(point).compress().to_bytes())
    };
    let new = match choices.below(16) {
        0 | 1 => {
            let mut flipped = old;
            flipped[choices.below(ELEMENT)] ^= 1 << choices.below(8);
            flipped
        }
        2 => choices.element(),
        // Other encodings of the same scalar and of the same or the opposite point.
        3 => sum(&old, &ORDER),
        4 => sum(&old, &PRIME),
        5 => difference(&PRIME, &old),
        6 => difference(&old, &ORDER),
        7 => sum(&old, &[0; 31].iter().copied().chain([0x80]).collect::<Vec<u8>>()),
        8 | 9 => {
            let special = special_encodings();
            special[choices.below(special.len())]
        }
        10 => on_scalar(&|scalar| -scalar),
        11 => on_scalar(&|scalar| scalar + Scalar::ONE),
        12 => {
            let other = Scalar::from_bytes_mod_order(choices.element());
            on_scalar(&|scalar| scalar * other)
        }
        13 => on_point(&|point| -point),
        14 => {
            let lists = [
                List::H,
                List::Q,
                List::SelectionMask,
                List::SelectionM,
                List::ChargeM,
                List::G,
                List::A,
            ];
            let list = lists[choices.below(lists.len())];
            on_point(&|point| point + generators::point(list, 0))
        }
        _ => {
            let factor = Scalar::from(choices.byte());
            on_point(&|point| factor * point)
        }
    };
    element.copy_from_slice(&new);
}

/// x + y modulo 2^256.
fn sum(x: &[u8; 32], y: &[u8]) -> [u8; 32] {
    let mut carry = 0;
    std::array::from_fn(|i| {
        carry += u16::from(x[i]) + u16::from(y[i]);
        let byte = carry as u8;
        carry >>= 8;
        byte
    })
}

/// x - y modulo 2^256: x + (not y) + 1.
fn difference(x: &[u8; 32], y: &[u8; 32]) -> [u8; 32] {
    let mut one = [0; 32];
    one[0] = 1;
    sum(&sum(x, &y.map(|byte| !byte)), &one)
}

/// Changes the commitments of an index.
pub(crate) fn change_commitments(commitments: &mut Vec<u8>, choices: &mut Choices) {
    let count = commitments.len() / ELEMENT;
    if count == 0 {
        return;
    }
    match choices.below(4) {
        0 => commitments.rotate_left(ELEMENT),
        1 => commitments.truncate(choices.below(commitments.len())),
        2 => commitments.extend(choices.element()),
        _ => change_element(&mut commitments[ELEMENT * choices.below(count)..][..ELEMENT], choices),
    }
}

/// A count or size somewhat or altogether different.
pub(crate) fn changed_number(value: u64, choices: &mut Choices) -> u64 {
    match choices.below(6) {
        0 => value.wrapping_add(1),
        1 => value.wrapping_sub(1),
        2 => 0,
        3 => 1 << 32,
        4 => u64::MAX,
        _ => choices.byte().into(),
    }
}

pub(crate) fn changed_norm(norm: u32, choices: &mut Choices) -> u32 {
    [norm.wrapping_sub(1), norm.wrapping_add(1), 0, 1 << 14, u32::MAX, 1][choices.below(6)]
}

impl Mutable for SelectionCase {
    fn change_statement(&mut self, choices: &mut Choices) {
        match choices.below(10) {
            0 => self.context[choices.below(32)] ^= 1 << choices.below(8),
            1 => self.rows = changed_number(self.rows, choices),
            2 => change_commitments(&mut self.commitments, choices),
            3 => change_list(&mut self.query, choices, |entry, choices| {
                entry.wrapping_add(choices.difference() as i16)
            }),
            4 => change_list(&mut self.noise, choices, |value, choices| {
                value.wrapping_add(choices.difference())
            }),
            5 => self.top_k = changed_number(self.top_k, choices),
            6 => self.squared_norm = changed_norm(self.squared_norm, choices),
            7 => self.change_filter(choices),
            8 => {
                self.ties = match self.ties {
                    Ties::Dropped => Ties::Kept,
                    Ties::Kept => Ties::Dropped,
                };
            }
            _ => {
                let position = choices.below(self.noise.len().max(1)) as u64;
                match CompressedRistretto(self.selection).decompress() {
                    // One selected row more.
                    Some(point) if choices.byte() & 1 == 0 => {
                        let more = point + generators::point(List::A, position);
                        self.selection = more.compress().to_bytes();
                    }
                    _ => change_element(&mut self.selection, choices),
                }
            }
        }
    }
}

impl SelectionCase {
    fn change_filter(&mut self, choices: &mut Choices) {
        let all = || (0..self.noise.len() as u64).collect();
        let mut allowed: Vec<u64> = self.allowed.clone().unwrap_or_else(all);
        match choices.below(4) {
            0 => {
                self.allowed = None;
                return;
            }
            1 => allowed.reverse(),
            _ => change_list(&mut allowed, choices, |position, choices| {
                position.wrapping_add(choices.difference() as u64)
            }),
        }
        self.allowed = Some(allowed);
    }
}

impl Mutable for IndexCase {
    fn change_statement(&mut self, choices: &mut Choices) {
        match choices.below(5) {
            0 => self.context[choices.below(32)] ^= 1 << choices.below(8),
            1 => self.rows = changed_number(self.rows, choices),
            2 => self.dimension = changed_number(self.dimension, choices),
            3 => self.squared_norm = changed_norm(self.squared_norm, choices),
            _ => change_commitments(&mut self.commitments, choices),
        }
    }
}

/// Changes one entry, drops the last, repeats the first, or exchanges two.
pub(crate) fn change_list<T: Copy>(
    list: &mut Vec<T>,
    choices: &mut Choices,
    change: impl Fn(T, &mut Choices) -> T,
) {
    let Some(first) = list.first().copied() else { return };
    let (i, j) = (choices.below(list.len()), choices.below(list.len()));
    match choices.below(5) {
        0 => drop(list.pop()),
        1 => list.push(first),
        2 => list.swap(i, j),
        _ => list[i] = change(list[i], choices),
    }
}
