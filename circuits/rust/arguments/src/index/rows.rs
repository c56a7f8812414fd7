//! The secret rows: small integers in honest use, any field elements when a test cheats.

use curve25519_dalek::scalar::Scalar;
use multiversion::multiversion;
use rayon::prelude::*;
use zeroize::{Zeroize, Zeroizing};

use super::projections::{PROJECTIONS, Projections};
use crate::entries::{Entry, MOST_SQUARED_NORM};
use crate::errors::{Error, Result, malformed};
use crate::field::{Element, SmallSum, inner_product};
use crate::progress::Progress;

/// N rows of d + 4 entries, row by row.
#[derive(Clone, Copy)]
pub enum Rows<'a> {
    /// Entries as an honest prover has them where B = 127.
    Small(&'a [i8]),
    /// Entries as an honest prover has them for any B.
    Wide(&'a [i16]),
    /// Entries as field elements; slower, and provable only if they are small after all.
    Field(&'a [Scalar]),
}

/// A vector of small integers or of field elements.
pub enum Values {
    /// Integers; absolute values below 2^24.
    Small(Vec<i32>),
    /// Field elements.
    Field(Vec<Element>),
}

impl Rows<'_> {
    /// The number of entries of all rows.
    pub fn entries(&self) -> usize {
        match self {
            Rows::Small(entries) => entries.len(),
            Rows::Wide(entries) => entries.len(),
            Rows::Field(entries) => entries.len(),
        }
    }

    /// Row `i` of rows of `width` entries.
    pub fn row(&self, i: usize, width: usize) -> Values {
        let range = i * width..(i + 1) * width;
        match self {
            Rows::Small(entries) => {
                Values::Small(entries[range].iter().map(|entry| i32::from(*entry)).collect())
            }
            Rows::Wide(entries) => {
                Values::Small(entries[range].iter().map(|entry| i32::from(*entry)).collect())
            }
            Rows::Field(entries) => {
                Values::Field(entries[range].iter().map(Element::from).collect())
            }
        }
    }
}

/// The vectors v_q, 309 of `width` entries 0 and 1.
pub struct ColumnVectors {
    entries: Vec<i16>,
    width: usize,
}

impl ColumnVectors {
    /// The v_q of these projections, for rows of `width` entries.
    pub fn new(projections: &Projections, width: usize) -> Self {
        let vector = |q| (0..width).map(move |column| i16::from(projections.v(q, column)));
        ColumnVectors { entries: (0..PROJECTIONS).flat_map(vector).collect(), width }
    }

    /// v_q at `column`, for every q.
    pub fn at_column(&self, column: usize) -> impl Iterator<Item = bool> {
        self.entries[column..].iter().step_by(self.width).map(|entry| *entry == 1)
    }
}

/// Rows whose products one task computes.
const TASK: usize = 1 << 8;
/// Rows that meet a vector while it is in a register.
const MET: usize = 4;
/// Rows multiplied between two reports of progress.
const STEP: usize = 1 << 14;

/// <X_i, v_q> for all rows and every q, computed once: two bytes each for small rows, four for wide
/// ones.
pub enum Products {
    /// Of rows for B = 127: |<X_i, v_q>| <= B sqrt(d + 4) < 2^15.
    Small(Vec<i16>),
    /// Of rows for B <= 4095: |<X_i, v_q>| <= B sqrt(d + 4) <= 2^20.
    Wide(Vec<i32>),
    /// Of rows of field elements.
    Field(Vec<Element>),
}

impl Products {
    /// The products of all rows; malformed where a row is too long for any B.
    pub fn new(rows: &Rows, vectors: &ColumnVectors, progress: &dyn Progress) -> Result<Self> {
        match rows {
            Rows::Small(entries) => Ok(Self::Small(multiplied(entries, vectors, progress)?)),
            Rows::Wide(entries) => {
                // Then no inner product of two rows, nor of a row and a v_q, leaves 32 bits.
                let short = |row| squared_norm(row) <= i64::from(MOST_SQUARED_NORM);
                if !entries.par_chunks(vectors.width).all(short) {
                    return Err(too_long());
                }
                Ok(Self::Wide(multiplied(entries, vectors, progress)?))
            }
            Rows::Field(entries) => {
                let products = entries.par_chunks(vectors.width).flat_map_iter(|row| {
                    let mut sums = vec![Element::ZERO; PROJECTIONS];
                    for (column, entry) in row.iter().enumerate() {
                        let entry = Element::from(entry);
                        for (sum, bit) in sums.iter_mut().zip(vectors.at_column(column)) {
                            *sum += entry.keep_if(u64::from(bit));
                        }
                    }
                    sums
                });
                Ok(Products::Field(products.collect()))
            }
        }
    }

    /// The products of row `i`.
    pub fn of(&self, i: usize) -> Values {
        let range = i * PROJECTIONS..(i + 1) * PROJECTIONS;
        match self {
            Products::Small(products) => {
                Values::Small(products[range].iter().map(|product| i32::from(*product)).collect())
            }
            Products::Wide(products) => Values::Small(products[range].to_vec()),
            Products::Field(products) => Values::Field(products[range].to_vec()),
        }
    }
}

impl Drop for Products {
    fn drop(&mut self) {
        match self {
            Products::Small(products) => products.zeroize(),
            Products::Wide(products) => products.zeroize(),
            Products::Field(products) => products.zeroize(),
        }
    }
}

fn too_long() -> Error {
    malformed("rows: one is too long to be completed to norm B")
}

fn squared_norm(row: &[i16]) -> i64 {
    row.iter().map(|entry| i64::from(*entry).pow(2)).sum()
}

/// The products of rows of small integers; malformed where the type P does not hold one.
fn multiplied<E: Entry, P: TryFrom<i32> + Zeroize + Default + Copy + Send>(
    entries: &[E],
    vectors: &ColumnVectors,
    progress: &dyn Progress,
) -> Result<Vec<P>> {
    let width = vectors.width;
    let count = entries.len() / width;
    let mut products = Zeroizing::new(vec![P::default(); count * PROJECTIONS]);
    let steps = entries.chunks(STEP * width).zip(products.chunks_mut(STEP * PROJECTIONS));
    for (step, (entries, products)) in steps.enumerate() {
        progress.report((step * STEP) as f64 / count as f64)?;
        let tasks =
            entries.par_chunks(TASK * width).zip(products.par_chunks_mut(TASK * PROJECTIONS));
        let fits = tasks.map(|(rows, products)| multiply(rows, vectors, products));
        if !fits.reduce(|| true, |left, right| left && right) {
            return Err(too_long());
        }
    }
    Ok(std::mem::take(&mut *products))
}

/// The products of some rows with every vector; whether all fit the type P.
fn multiply<E: Entry, P: TryFrom<i32>>(
    rows: &[E],
    vectors: &ColumnVectors,
    products: &mut [P],
) -> bool {
    let mut fits = true;
    let mut wide = Zeroizing::new(vec![0i16; MET * vectors.width]);
    let mut sums = Zeroizing::new(vec![0i32; MET * PROJECTIONS]);
    for (rows, products) in
        rows.chunks(MET * vectors.width).zip(products.chunks_mut(MET * PROJECTIONS))
    {
        // Rows that are missing in the end keep what was there before; nobody reads their sums.
        wide.iter_mut().zip(rows).for_each(|(wide, entry)| *wide = (*entry).into());
        inner_products(&wide, &vectors.entries, &mut sums);
        for (product, sum) in products.iter_mut().zip(sums.iter()) {
            match P::try_from(*sum) {
                Ok(fitting) => *product = fitting,
                Err(_) => fits = false,
            }
        }
    }
    fits
}

/// <X_i, v_q> of four rows, row by row. A sum is at most 128 (2^16 + 4) < 2^31 for entries of 8
/// bits, and at most 2^12 sqrt(2^16 + 4) for rows of norm below 2^12.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512vl", "x86_64+avx2"))]
fn inner_products(rows: &[i16], vectors: &[i16], sums: &mut [i32]) {
    let width = rows.len() / MET;
    let (first, second) = rows.split_at(2 * width);
    let ((a, b), (c, d)) = (first.split_at(width), second.split_at(width));
    for (q, vector) in vectors.chunks_exact(width).enumerate() {
        let mut sum = [0i32; MET];
        for ((((v, a), b), c), d) in vector.iter().zip(a).zip(b).zip(c).zip(d) {
            let v = i32::from(*v);
            for (sum, x) in sum.iter_mut().zip([a, b, c, d]) {
                *sum = sum.wrapping_add(i32::from(*x).wrapping_mul(v));
            }
        }
        for (row, sum) in sum.into_iter().enumerate() {
            sums[row * PROJECTIONS + q] = sum;
        }
    }
}

impl Values {
    /// Entry `index` as a field element.
    pub fn element(&self, index: usize) -> Element {
        match self {
            Values::Small(values) => Element::from_integer(i64::from(values[index])),
            Values::Field(values) => values[index],
        }
    }

    fn elements(&self) -> Vec<Element> {
        match self {
            Values::Small(values) => {
                values.iter().map(|value| Element::from_integer(i64::from(*value))).collect()
            }
            Values::Field(values) => values.clone(),
        }
    }

    /// <self, other> of rows.
    pub fn product(&self, other: &Values) -> Element {
        match (self, other) {
            (Values::Small(left), Values::Small(right)) => {
                // Entries below 2^7 and fewer than 2^17 of them, or norms below 2^12: 32 bits hold the
                // sum, and wrapping arithmetic lets the compiler use vector instructions.
                let terms = left.iter().zip(right).map(|(a, b)| a.wrapping_mul(*b));
                Element::from_integer(i64::from(terms.fold(0, i32::wrapping_add)))
            }
            _ => inner_product(&self.elements(), &other.elements()),
        }
    }

    /// Every entry times its weight.
    pub fn weighted(&self, weights: &[Element]) -> Vec<Element> {
        match self {
            Values::Small(values) => {
                let product = |(value, weight): (&i32, &Element)| {
                    let mut sum = SmallSum::default();
                    sum.add_product(weight, i64::from(*value));
                    sum.reduce()
                };
                values.iter().zip(weights).map(product).collect()
            }
            Values::Field(values) => values.iter().zip(weights).map(|(x, w)| *x * *w).collect(),
        }
    }
}

/// sum_c weights[c] vectors[c], entry by entry; vectors left out are zero.
pub fn fold(vectors: &[(usize, Values)], weights: &[Element], length: usize) -> Vec<Element> {
    let mut small = vec![SmallSum::default(); length];
    let mut field = vec![Element::ZERO; length];
    for (c, values) in vectors {
        match values {
            Values::Small(values) => {
                for (sum, value) in small.iter_mut().zip(values) {
                    sum.add_product(&weights[*c], i64::from(*value));
                }
            }
            Values::Field(values) => {
                for (sum, value) in field.iter_mut().zip(values) {
                    *sum += weights[*c] * *value;
                }
            }
        }
    }
    small.iter().zip(field).map(|(small, field)| small.reduce() + field).collect()
}

impl Drop for Values {
    fn drop(&mut self) {
        match self {
            Values::Small(values) => values.zeroize(),
            Values::Field(values) => values.zeroize(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::progress::Silent;
    use crate::scalars::from_integer;

    fn vectors(width: usize) -> ColumnVectors {
        let count = PROJECTIONS * (1 + width);
        let bits = (0..count.div_ceil(8)).map(|i| (i * i / 5 + 3 * i) as u8).collect();
        ColumnVectors::new(&Projections::new(bits, 1, width), width)
    }

    /// Of small rows and of the same rows as field elements, about the ends of a task.
    #[test]
    fn products_are_the_sums_of_the_chosen_entries() {
        for (count, width) in [(1, 5), (3, 4), (4, 33), (TASK - 1, 6), (TASK + 5, 7), (2, 255)] {
            let rows: Vec<i8> = (0..count * width).map(|i| (i * i + 7 * i) as u8 as i8).collect();
            let field: Vec<Scalar> = rows.iter().map(|x| from_integer(i128::from(*x))).collect();
            let vectors = vectors(width);
            let small = Products::new(&Rows::Small(&rows), &vectors, &Silent).unwrap();
            let shorts: Vec<i16> = rows.iter().map(|x| i16::from(*x)).collect();
            let short = Products::new(&Rows::Wide(&shorts), &vectors, &Silent).unwrap();
            let wide = Products::new(&Rows::Field(&field), &vectors, &Silent).unwrap();
            for i in [0, count / 2, count - 1] {
                for q in [0, 1, PROJECTIONS - 1] {
                    let chosen = |(x, v): (&i8, &i16)| i64::from(*x) * i64::from(*v);
                    let row = rows[i * width..][..width].iter();
                    let sum = row.zip(&vectors.entries[q * width..]).map(chosen).sum();
                    assert_eq!(small.of(i).element(q), Element::from_integer(sum));
                    assert_eq!(short.of(i).element(q), Element::from_integer(sum));
                    assert_eq!(wide.of(i).element(q), Element::from_integer(sum));
                }
            }
        }
    }

    #[test]
    fn the_longest_rows_fit_and_longer_ones_are_refused() {
        let all = |width: usize| ColumnVectors { entries: vec![1; PROJECTIONS * width], width };
        let products = |x: i8, width: usize| {
            Products::new(&Rows::Small(&vec![x; width]), &all(width), &Silent)
        };
        for (x, width) in [(127, 258), (-128, 256)] {
            let sum = Element::from_integer(i64::from(x) * width as i64);
            assert_eq!(products(x, width).unwrap().of(0).element(9), sum);
            assert!(products(x, width + 1).is_err());
        }
        let wide = |rows: &[i16], width: usize| {
            Products::new(&Rows::Wide(rows), &all(width), &Silent).map(|products| products.of(0))
        };
        assert_eq!(wide(&[-4095], 1).unwrap().element(0), Element::from_integer(-4095));
        assert_eq!(wide(&[511; 64], 64).unwrap().element(7), Element::from_integer(511 * 64));
        for (x, width) in [(512, 64), (-4096, 1), (i16::MIN, 1), (i16::MAX, 255)] {
            assert!(wide(&vec![x; width], width).is_err());
        }
    }
}
