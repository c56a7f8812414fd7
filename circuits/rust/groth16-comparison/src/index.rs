//! The committed index: a Merkle tree over digests of embeddings packed into field elements.

use ark_bn254::Fr;
use ark_ff::{One, PrimeField, Zero};
use ark_relations::gr1cs::SynthesisError;
use rayon::prelude::*;

use crate::builder::{Builder, Part};
use crate::poseidon::Poseidon;
use crate::values::Value;

/// Bits of one coordinate, stored as `x + 128`.
const COORDINATE_BITS: u32 = 8;
/// Coordinates in one field element (31 * 8 = 248 bits).
const PACKED: usize = 31;

/// The two permutations of a circuit.
pub struct Hashes {
    /// Nodes of the tree, and the commitment to the seed.
    pub narrow: Poseidon,
    /// Everything longer.
    pub wide: Poseidon,
}

impl Default for Hashes {
    fn default() -> Self {
        Self { narrow: Poseidon::narrow(), wide: Poseidon::wide() }
    }
}

fn offset() -> Fr {
    Fr::from(1u64 << (COORDINATE_BITS - 1))
}

/// The digest of a vector of 8-bit integers.
pub fn digest_vector(wide: &Poseidon, vector: &[i8]) -> Fr {
    let packed: Vec<Fr> = vector
        .chunks(PACKED)
        .map(|chunk| {
            let bytes: Vec<u8> = chunk.iter().map(|x| (*x as u8).wrapping_add(128)).collect();
            Fr::from_le_bytes_mod_order(&bytes)
        })
        .collect();
    wide.digest(&packed)
}

/// A vector as private variables of the circuit.
pub struct Vector {
    /// `x_j`.
    pub coordinates: Vec<Value>,
}

impl Vector {
    /// Unconstrained coordinates: any field elements.
    pub fn free(builder: &mut Builder, vector: &[i8]) -> Result<Self, SynthesisError> {
        let coordinate = |x: &i8| builder.witness(Fr::from(*x));
        Ok(Self { coordinates: vector.iter().map(coordinate).collect::<Result<_, _>>()? })
    }

    /// Coordinates constrained to 8 bits, in `part`.
    pub fn ranged(
        builder: &mut Builder,
        part: Part,
        vector: &[i8],
    ) -> Result<Self, SynthesisError> {
        builder.part(part);
        let minus_offset = Value::constant(-offset());
        let coordinate = |x: &i8| {
            let stored = builder.unsigned(Fr::from(*x) + offset(), COORDINATE_BITS)?;
            Ok(stored.plus(&minus_offset))
        };
        Ok(Self { coordinates: vector.iter().map(coordinate).collect::<Result<_, _>>()? })
    }

    /// [`digest_vector`] as constraints, in `part`.
    pub fn digest(
        &self,
        builder: &mut Builder,
        part: Part,
        wide: &Poseidon,
    ) -> Result<Value, SynthesisError> {
        builder.part(part);
        let base = Fr::from(1u64 << COORDINATE_BITS);
        let offset = Value::constant(offset());
        let packed: Vec<Value> = self
            .coordinates
            .chunks(PACKED)
            .map(|chunk| {
                let stored: Vec<Value> = chunk.iter().map(|x| x.clone().plus(&offset)).collect();
                Value::positional(base, &stored)
            })
            .collect();
        wide.digest_in(builder, &packed)
    }

    /// `<self, other>`: one constraint per coordinate.
    pub fn inner_product(
        &self,
        builder: &mut Builder,
        other: &Self,
    ) -> Result<Value, SynthesisError> {
        builder.part(Part::InnerProducts);
        let mut sum = Value::constant(Fr::zero());
        for (x, y) in self.coordinates.iter().zip(&other.coordinates) {
            sum.add_scaled(Fr::one(), &builder.product(x, y)?);
        }
        Ok(sum)
    }
}

/// The tree over the rows, padded with zero leaves to a power of two.
pub struct Tree {
    /// From the leaves to the root.
    levels: Vec<Vec<Fr>>,
}

impl Tree {
    /// Commits to `rows`, each of `dimension` coordinates.
    pub fn new(hashes: &Hashes, rows: &[i8], dimension: usize) -> Self {
        let mut leaves: Vec<Fr> =
            rows.par_chunks(dimension).map(|row| digest_vector(&hashes.wide, row)).collect();
        leaves.resize(leaves.len().next_power_of_two(), Fr::zero());
        let mut levels = vec![leaves];
        while let Some(last) = levels.last().filter(|level| level.len() > 1) {
            let parents = last.par_chunks(2).map(|pair| hashes.narrow.digest(pair)).collect();
            levels.push(parents);
        }
        Self { levels }
    }

    /// The commitment.
    pub fn root(&self) -> Fr {
        self.levels[self.levels.len() - 1][0]
    }

    /// The nodes beside the path from leaf `position` to the root.
    fn siblings(&self, position: usize) -> impl Iterator<Item = Fr> + '_ {
        let height = self.levels.len() - 1;
        self.levels[..height].iter().enumerate().map(move |(k, level)| level[(position >> k) ^ 1])
    }
}

/// The root over all `leaves`, padded as in [`Tree::new`].
pub fn root_in(
    builder: &mut Builder,
    hashes: &Hashes,
    leaves: Vec<Value>,
) -> Result<Value, SynthesisError> {
    builder.part(Part::IndexOpening);
    let mut level = leaves;
    let mut empty = Fr::zero();
    while level.len() > 1 {
        let padding = Value::constant(empty);
        level = level
            .chunks(2)
            .map(|pair| {
                let pair = [pair[0].clone(), pair.get(1).unwrap_or(&padding).clone()];
                hashes.narrow.digest_in(builder, &pair)
            })
            .collect::<Result<_, _>>()?;
        empty = hashes.narrow.digest(&[empty, empty]);
    }
    Ok(level.swap_remove(0))
}

/// The root reached from `leaf` at `position`, whose bits become private variables, and the position.
pub fn path_in(
    builder: &mut Builder,
    hashes: &Hashes,
    tree: &Tree,
    leaf: Value,
    position: usize,
) -> Result<(Value, Value), SynthesisError> {
    builder.part(Part::IndexOpening);
    let mut node = leaf;
    let mut bits = Vec::new();
    for (height, sibling) in tree.siblings(position).enumerate() {
        let bit = builder.bit(position >> height & 1 == 1)?;
        let sibling = builder.witness(sibling)?;
        // bit = 1: the node is the right child.
        let swap = builder.product(&bit, &sibling.clone().minus(&node))?;
        let left = node.clone().plus(&swap);
        let right = sibling.minus(&swap);
        node = hashes.narrow.digest_in(builder, &[left, right])?;
        bits.push(bit);
    }
    Ok((node, Value::positional(Fr::from(2u64), &bits)))
}
