//! The tables over entries and rows before x is bound: bits and small integers, never elements.
//!
//! Row i's bits of all entries lie side by side, entries by the reversal of their bits: those that
//! earlier rounds have combined are neighbours, and a table of 256 sums looks eight of them up.

use rayon::prelude::*;
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::field::{Element, ProductSum, SmallSum};
use crate::multilinear::eq_table;

/// Bits that one look-up combines.
const BYTE: usize = 8;

/// What is known of one entry and row.
#[derive(Clone, Copy, Default)]
pub struct Cell {
    /// b.
    pub charged: bool,
    /// h.
    pub exhausted: bool,
    /// Whether the row passes the entry's filter.
    pub allowed: bool,
    /// c.
    pub before: u32,
    /// Y.
    pub difference: i32,
    /// sum 2^k u_k.
    pub distance: u32,
}

/// Planes before those of the bits of the distance and of c.
const FIXED: usize = 3;

/// The tables of all rows.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct Planes {
    entry_variables: usize,
    distance_bits: usize,
    planes: usize,
    /// Bytes of a plane of one row: 2^mx bits.
    bytes: usize,
    bits: Vec<u8>,
    differences: Vec<i32>,
    /// q + sum 2^k u_k.
    distances: Vec<i32>,
}

/// Sums of the weights of the bits of a byte, and the weight of each byte.
struct Lookup {
    sums: Vec<Element>,
    bytes: Vec<Element>,
}

impl Lookup {
    /// For the weights that are the products of one factor per bound variable, the first variable
    /// at the lowest bit.
    fn new(low: &[Element], bytes: Vec<Element>) -> Self {
        let mut sums = vec![Element::ZERO; 1 << low.len()];
        for (bit, weight) in low.iter().enumerate() {
            for pattern in 0..1 << bit {
                sums[pattern | 1 << bit] = sums[pattern] + *weight;
            }
        }
        Lookup { sums, bytes }
    }

    /// The weighted sum of `length` bits from bit `start` on.
    fn sum(&self, bits: &[u8], start: usize, length: usize) -> Element {
        if length <= BYTE {
            let pattern = bits[start / BYTE] >> (start % BYTE);
            return self.sums[usize::from(pattern) & (self.sums.len() - 1)];
        }
        let mut sum = ProductSum::default();
        for (byte, weight) in bits[start / BYTE..][..length / BYTE].iter().zip(&self.bytes) {
            sum.add_product(weight, &self.sums[usize::from(*byte)]);
        }
        sum.reduce()
    }
}

/// The weights of entries when some variables of x are bound.
pub struct Weighing {
    /// Entries that one value combines: 2^(bound variables).
    length: usize,
    lookup: Lookup,
    /// The same, each entry times eq(t, ·) of the bound variables.
    claims: Lookup,
    /// eq(r, a) of every combined entry a.
    entries: Vec<Element>,
    /// eq(r, all ones): of the mask row.
    pub mask_row: Element,
}

impl Weighing {
    /// For x bound to `r` so far, and the challenges t.
    pub fn new(r: &[Element], t: &[Element]) -> Self {
        let reversed = |values: &[Element]| values.iter().rev().copied().collect::<Vec<_>>();
        let eq = |values: &[Element]| eq_table(&Element::ONE, &reversed(values), 1 << values.len());
        let (low, high) = r.split_at(r.len().min(BYTE.ilog2() as usize));
        let (t_low, t_high) = t[..r.len()].split_at(low.len());
        let products = |left: Vec<Element>, right: Vec<Element>| -> Vec<Element> {
            left.iter().zip(right).map(|(a, b)| *a * b).collect()
        };
        Weighing {
            length: 1 << r.len(),
            lookup: Lookup::new(&eq(low), eq(high)),
            claims: Lookup::new(&products(eq(low), eq(t_low)), products(eq(high), eq(t_high))),
            entries: eq(r),
            mask_row: r.iter().copied().product(),
        }
    }
}

/// The tables of one row, some variables of x bound; u_k are not scaled.
#[derive(Clone, Default)]
pub struct RowValues {
    /// u_k.
    pub bits: [Element; super::relation::MOST_BITS],
    /// b, c, h, Y, q + sum 2^k u_k.
    pub others: [Element; 5],
    /// The weight of the allowed entries.
    pub inside: Element,
}

impl Planes {
    /// The tables of `rows` rows; `cells` has those of one entry, row after row.
    pub fn new(
        rows: usize,
        entry_variables: usize,
        distance_bits: usize,
        most_before: u32,
        entries: &[Vec<Cell>],
    ) -> Self {
        let places = 1usize << entry_variables;
        let bytes = places.div_ceil(BYTE);
        let before_bits = (u32::BITS - most_before.leading_zeros()) as usize;
        let planes = FIXED + distance_bits + before_bits;
        let mut bits = vec![0u8; rows * planes * bytes];
        let mut differences = vec![0i32; rows * places];
        let mut distances = vec![0i32; rows * places];
        let row_bits = bits.par_chunks_mut(planes * bytes);
        let row_values = differences.par_chunks_mut(places).zip(distances.par_chunks_mut(places));
        row_bits.zip(row_values).enumerate().for_each(|(row, (bits, (differences, distances)))| {
            for (entry, cells) in entries.iter().enumerate() {
                let cell = cells[row];
                let place = reversed(entry, entry_variables);
                let mut set = |plane: usize, bit: bool| {
                    bits[plane * bytes + place / BYTE] |= u8::from(bit) << (place % BYTE);
                };
                set(0, cell.charged);
                set(1, cell.exhausted);
                set(2, cell.allowed);
                (0..distance_bits).for_each(|k| set(FIXED + k, cell.distance >> k & 1 == 1));
                for k in 0..before_bits {
                    set(FIXED + distance_bits + k, cell.before >> k & 1 == 1);
                }
                let asked = i32::from(cell.charged) + i32::from(cell.exhausted);
                differences[place] = cell.difference;
                distances[place] = cell.distance as i32 + asked;
            }
        });
        Planes { entry_variables, distance_bits, planes, bytes, bits, differences, distances }
    }

    /// The values of row `i` at the entries that agree with `later` in the variables that are
    /// left, their bits reversed.
    pub fn values(&self, row: usize, later: usize, weighing: &Weighing) -> RowValues {
        let (start, length) = (later * weighing.length, weighing.length);
        let stride = self.planes * self.bytes;
        let row_bits = &self.bits[row * stride..][..stride];
        let plane = |number: usize| &row_bits[number * self.bytes..][..self.bytes];
        let value = |number: usize| weighing.lookup.sum(plane(number), start, length);
        let mut values = RowValues::default();
        for (k, bit) in values.bits[..self.distance_bits].iter_mut().enumerate() {
            *bit = value(FIXED + k);
        }
        let before = (FIXED + self.distance_bits..self.planes)
            .rev()
            .fold(Element::ZERO, |sum, number| sum.double() + value(number));
        let integers = |all: &[i32]| {
            let mut sum = SmallSum::default();
            let part = &all[(row << self.entry_variables) + start..][..length];
            for (weight, integer) in weighing.entries.iter().zip(part) {
                sum.add_product(weight, i64::from(*integer));
            }
            sum.reduce()
        };
        values.others =
            [value(0), before, value(1), integers(&self.differences), integers(&self.distances)];
        values.inside = weighing.claims.sum(plane(2), start, length);
        values
    }

    /// The weight of the first `count` entries among those that agree with `later`.
    pub fn claimed(&self, count: usize, later: usize, weighing: &Weighing) -> Element {
        let mut bits = vec![0u8; self.bytes];
        for entry in 0..count {
            let place = reversed(entry, self.entry_variables);
            bits[place / BYTE] |= 1 << (place % BYTE);
        }
        weighing.claims.sum(&bits, later * weighing.length, weighing.length)
    }
}

/// The last `bits` bits of a number, the other way round.
pub fn reversed(number: usize, bits: usize) -> usize {
    number.reverse_bits() >> (usize::BITS as usize - bits)
}
