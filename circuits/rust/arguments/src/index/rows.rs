//! The secret rows: small integers in honest use, any field elements when a test cheats.

use curve25519_dalek::scalar::Scalar;
use ndarray::Array2;
use zeroize::Zeroize;

use super::projections::{PROJECTIONS, Projections};
use crate::field::{Element, SmallSum, inner_product};

/// N rows of d + 4 entries, row by row.
#[derive(Clone, Copy)]
pub enum Rows<'a> {
    /// Entries as an honest prover has them.
    Small(&'a [i8]),
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
            Rows::Field(entries) => {
                Values::Field(entries[range].iter().map(Element::from).collect())
            }
        }
    }
}

/// The vectors v_q as one matrix.
pub struct ColumnVectors {
    /// width × 309, entries 0 and 1.
    matrix: Array2<f32>,
}

impl ColumnVectors {
    /// The v_q of these projections, for rows of `width` entries.
    pub fn new(projections: &Projections, width: usize) -> Self {
        let entry = |(column, q)| f32::from(u8::from(projections.v(q, column)));
        ColumnVectors { matrix: Array2::from_shape_fn((width, PROJECTIONS), entry) }
    }

    /// v_q at `column`, for every q.
    pub fn at_column(&self, column: usize) -> impl Iterator<Item = bool> {
        self.matrix.row(column).into_iter().map(|entry| *entry == 1.0)
    }

    /// <X_i, v_q> for every q and each of these rows.
    pub fn project(&self, rows: &Rows, indices: &[usize]) -> Vec<Values> {
        let width = self.matrix.nrows();
        match rows {
            // Integers below 128 (2^16 + 4) < 2^24 in every partial sum: exact in f32, in any order.
            Rows::Small(entries) => {
                let entry = |(i, column)| f32::from(entries[indices[i] * width + column]);
                let mut gathered = Array2::from_shape_fn((indices.len(), width), entry);
                let mut products = gathered.dot(&self.matrix);
                let integers = |row: ndarray::ArrayView1<f32>| {
                    Values::Small(row.iter().map(|product| *product as i32).collect())
                };
                let projected = products.rows().into_iter().map(integers).collect();
                gathered.iter_mut().for_each(Zeroize::zeroize);
                products.iter_mut().for_each(Zeroize::zeroize);
                projected
            }
            Rows::Field(entries) => {
                let project = |i: &usize| {
                    let row = &entries[i * width..(i + 1) * width];
                    let mut sums = vec![Element::ZERO; PROJECTIONS];
                    for (column, entry) in row.iter().enumerate() {
                        let entry = Element::from(entry);
                        for (sum, bit) in sums.iter_mut().zip(self.at_column(column)) {
                            *sum += entry.keep_if(u64::from(bit));
                        }
                    }
                    Values::Field(sums)
                };
                indices.iter().map(project).collect()
            }
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
                // Entries below 2^7 and fewer than 2^17 of them: 32 bits hold the sum, and wrapping
                // arithmetic lets the compiler use vector instructions.
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
