//! Rows that have squared norm B² only modulo the group order.
//!
//! A prover that knows the projections before it commits can choose field elements that all of
//! them miss: entries of any size, every projection zero, squared norm B² in the field.

use curve25519_dalek::ristretto::RistrettoPoint;
use curve25519_dalek::scalar::Scalar;
use ragaudit_arguments::generators::{self, List};
use ragaudit_arguments::index::projections::{PROJECTIONS, Projections};
use ragaudit_arguments::multiscalar::secret_sum;
use ragaudit_arguments::randomness::ProverRandomness;
use ragaudit_arguments::scalars::inner_product;
use ragaudit_arguments::{Result, SQUARED_NORM};

/// A row of `width` entries that every projection of row `row` misses; `None` when the kernel
/// holds none of the right norm (then `width` is too small).
pub fn invisible_row(
    projections: &Projections,
    row: usize,
    width: usize,
    randomness: &mut ProverRandomness,
) -> Option<Vec<Scalar>> {
    let bit = |q, column| Scalar::from(u8::from(projections.v(q, column)));
    let equations: Vec<Vec<Scalar>> = (0..PROJECTIONS)
        .filter(|q| projections.u(*q, row))
        .map(|q| (0..width).map(|column| bit(q, column)).collect())
        .collect();
    (0..64).find_map(|_| {
        let vector = kernel_vector(equations.clone(), width, randomness)?;
        let norm = inner_product(&vector, &vector);
        let scale = square_root(&(Scalar::from(SQUARED_NORM) * norm.invert()))?;
        Some(vector.iter().map(|entry| scale * entry).collect())
    })
}

/// A random solution of the homogeneous equations, by Gaussian elimination.
fn kernel_vector(
    mut equations: Vec<Vec<Scalar>>,
    width: usize,
    randomness: &mut ProverRandomness,
) -> Option<Vec<Scalar>> {
    let mut pivots = Vec::new();
    for column in 0..width {
        let rank = pivots.len();
        let Some(found) = (rank..equations.len()).find(|i| equations[*i][column] != Scalar::ZERO)
        else {
            continue;
        };
        equations.swap(rank, found);
        let inverse = equations[rank][column].invert();
        let pivot: Vec<Scalar> = equations[rank].iter().map(|entry| inverse * entry).collect();
        for equation in &mut equations[rank + 1..] {
            let factor = equation[column];
            for (entry, pivot) in equation.iter_mut().zip(&pivot).skip(column) {
                *entry -= factor * pivot;
            }
        }
        equations[rank] = pivot;
        pivots.push(column);
    }
    if pivots.len() == width {
        return None;
    }
    let mut solution = randomness.scalars(width);
    for (equation, column) in equations.iter().zip(&pivots).rev() {
        solution[*column] = -inner_product(&equation[column + 1..], &solution[column + 1..]);
    }
    Some(solution)
}

/// A square root modulo l, where there is one; l = 5 mod 8.
fn square_root(square: &Scalar) -> Option<Scalar> {
    // The integers (l + 3)/8 and (l - 1)/4 are the residues of 3/8 and -1/4.
    let eighth = Scalar::from(8u8).invert();
    let quarter = Scalar::from(4u8).invert();
    let candidate = power(square, &(Scalar::from(3u8) * eighth));
    let turn = power(&Scalar::from(2u8), &-quarter);
    [candidate, candidate * turn].into_iter().find(|root| root * root == *square)
}

/// base^exponent, the exponent read as an integer below l.
fn power(base: &Scalar, exponent: &Scalar) -> Scalar {
    exponent.as_bytes().iter().rev().fold(Scalar::ONE, |result, byte| {
        (0..8).rev().fold(result, |result, bit| {
            let squared = result * result;
            if (byte >> bit) & 1 == 1 { squared * base } else { squared }
        })
    })
}

/// Commitments to rows of field elements under these blindings.
pub fn commit(rows: &[Vec<Scalar>], blindings: &[Scalar]) -> Result<Vec<u8>> {
    let commitments = rows.iter().zip(blindings).map(|(row, blinding)| {
        let generators: Vec<RistrettoPoint> = generators::first(List::G, row.len());
        let point = secret_sum(row, &generators) + blinding * generators::point(List::H, 0);
        point.compress().to_bytes()
    });
    Ok(commitments.flatten().collect())
}
