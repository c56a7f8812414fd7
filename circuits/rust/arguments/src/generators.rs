//! Generators by hash-to-group (spec 4.2; RFC 9380 with the map of RFC 9496), cached.

use std::collections::HashMap;
use std::sync::{LazyLock, OnceLock, RwLock};

use curve25519_dalek::ristretto::{CompressedRistretto, RistrettoBasepointTable, RistrettoPoint};
use rayon::prelude::*;
use sha2::{Digest, Sha256, Sha512};

use crate::encoding::ELEMENT_BYTES;
use crate::errors::{Result, malformed};

/// The lists of generators. No list is used for two purposes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum List {
    /// Blindings; index 0.
    H,
    /// Values of linear forms; index 0.
    Q,
    /// Row coordinates 0..d+3.
    G,
    /// Positions.
    A,
    /// Masks of the selection columns; index 0.
    SelectionMask,
    /// Threshold (0) and mask of Y (1).
    SelectionM,
    /// Mask of the selection sumcheck.
    SelectionR,
    /// Range rows of the index argument.
    IndexP,
    /// Masks of the range columns; index 0.
    IndexMask,
    /// Mask of X in index/v1; index 0. No argument opens anything on it, and none ever may.
    IndexM,
    /// Mask of the index sumcheck.
    IndexR,
    /// Mask of the budget sumcheck.
    BudgetR,
    /// Mask of Y in the charge argument; index 0.
    ChargeM,
    /// Mask of the charge sumcheck.
    ChargeR,
}

/// Every list, in no particular order.
pub const LISTS: [List; 14] = [
    List::H,
    List::Q,
    List::G,
    List::A,
    List::SelectionMask,
    List::SelectionM,
    List::SelectionR,
    List::IndexP,
    List::IndexMask,
    List::IndexM,
    List::IndexR,
    List::BudgetR,
    List::ChargeM,
    List::ChargeR,
];

impl List {
    /// The name in the domain separation tag.
    pub fn name(self) -> &'static str {
        match self {
            List::H => "H",
            List::Q => "Q",
            List::G => "G",
            List::A => "A",
            List::SelectionMask => "sel/A*",
            List::SelectionM => "sel/M",
            List::SelectionR => "sel/R",
            List::IndexP => "idx/P",
            List::IndexMask => "idx/P*",
            List::IndexM => "idx/M",
            List::IndexR => "idx/R",
            List::BudgetR => "bud/R",
            List::ChargeM => "chg/M",
            List::ChargeR => "chg/R",
        }
    }
}

/// One generator, by name.
///
/// ```
/// use ragaudit_arguments::generators::{Generator, List, derive, point, points};
///
/// let names = [Generator::new(List::G, 0), Generator::new(List::G, 1)];
/// assert_eq!(points(&names), [point(List::G, 0), point(List::G, 1)]);
/// assert_ne!(derive(names[0]), derive(Generator::new(List::A, 0)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Generator {
    /// Its list.
    pub list: List,
    /// Its index in the list.
    pub index: u64,
}

impl Generator {
    /// Generator `index` of `list`.
    pub fn new(list: List, index: u64) -> Self {
        Generator { list, index }
    }
}

/// Fewer generators are derived sooner than another thread wakes up.
const LEAST_SHARED: usize = 16;

/// Entries kept in the process-wide cache: 160 MB of points at most.
const CACHE_LIMIT: usize = 1 << 20;

static CACHE: LazyLock<RwLock<HashMap<Generator, RistrettoPoint>>> =
    LazyLock::new(Default::default);

/// Constant-time multiplication table of H.
pub static H: LazyLock<RistrettoBasepointTable> = LazyLock::new(|| table(List::H));
/// Constant-time multiplication table of sel/A*.
pub static SELECTION_MASK: LazyLock<RistrettoBasepointTable> =
    LazyLock::new(|| table(List::SelectionMask));
/// Constant-time multiplication table of idx/P*.
pub static INDEX_MASK: LazyLock<RistrettoBasepointTable> = LazyLock::new(|| table(List::IndexMask));

fn table(list: List) -> RistrettoBasepointTable {
    RistrettoBasepointTable::create(&derive(Generator::new(list, 0)))
}

/// gen(list, i): hash_to_ristretto255 of le(i, 8) under the list's tag. Not cached.
pub fn derive(generator: Generator) -> RistrettoPoint {
    let tag = format!("ragaudit/v1/generator/{}", generator.list.name());
    RistrettoPoint::from_uniform_bytes(&expand_message(
        &generator.index.to_le_bytes(),
        tag.as_bytes(),
    ))
}

/// expand_message_xmd of RFC 9380 §5.3.1 with SHA-512 and 64 bytes of output.
fn expand_message(message: &[u8], tag: &[u8]) -> [u8; 64] {
    let tag_length = [tag.len() as u8];
    let first = Sha512::new()
        .chain_update([0u8; 128])
        .chain_update(message)
        .chain_update(64u16.to_be_bytes())
        .chain_update([0])
        .chain_update(tag)
        .chain_update(tag_length)
        .finalize();
    Sha512::new()
        .chain_update(first)
        .chain_update([1])
        .chain_update(tag)
        .chain_update(tag_length)
        .finalize()
        .into()
}

/// One generator, from the cache if it is there.
pub fn point(list: List, index: u64) -> RistrettoPoint {
    points(&[Generator::new(list, index)])[0]
}

/// The first `count` generators of a list.
///
/// ```
/// use ragaudit_arguments::generators::{List, first, point};
///
/// assert_eq!(first(List::SelectionM, 2)[1], point(List::SelectionM, 1));
/// ```
pub fn first(list: List, count: usize) -> Vec<RistrettoPoint> {
    points(&(0..count as u64).map(|index| Generator::new(list, index)).collect::<Vec<_>>())
}

/// The named generators, computing in parallel those that the cache lacks.
pub fn points(generators: &[Generator]) -> Vec<RistrettoPoint> {
    let found = lookup(generators);
    let missing: Vec<Generator> = generators
        .iter()
        .zip(&found)
        .filter(|(_, hit)| hit.is_none())
        .map(|(name, _)| *name)
        .collect();
    let derived: Vec<RistrettoPoint> = if missing.len() < LEAST_SHARED {
        missing.iter().map(|name| obtain(*name)).collect()
    } else {
        missing.par_iter().map(|name| obtain(*name)).collect()
    };
    remember(&missing, &derived);
    let mut fresh = derived.into_iter();
    found.into_iter().filter_map(|hit| hit.or_else(|| fresh.next())).collect()
}

/// Positions that [`use_positions`] takes.
pub const KNOWN_POSITIONS: usize = 1 << 20;

/// SHA-256 of the encodings of A_0 .. A_(2^20 - 1). They are constants, so whoever has bytes with
/// this digest has them, wherever the bytes came from.
const POSITIONS_DIGEST: [u8; 32] = [
    0xc1, 0x3a, 0xb7, 0x89, 0x9d, 0xe3, 0x8e, 0x55, 0xcf, 0xd7, 0x1b, 0x35, 0x75, 0xb0, 0x90, 0xda,
    0x10, 0xc0, 0x1d, 0xe1, 0x95, 0xe9, 0x8a, 0x38, 0xe4, 0x38, 0x7b, 0xde, 0xab, 0x10, 0xd0, 0xde,
];

static POSITIONS: OnceLock<Vec<u8>> = OnceLock::new();

/// The encodings of A_0 .. A_(count - 1), derived in parallel and not cached.
///
/// ```
/// use ragaudit_arguments::generators::{List, point, position_encodings, use_positions};
///
/// let encodings = position_encodings(2);
/// assert_eq!(encodings[32..], point(List::A, 1).compress().to_bytes());
/// assert!(use_positions(encodings).is_err()); // two of 2^20
/// ```
pub fn position_encodings(count: usize) -> Vec<u8> {
    let encoding = |i| derive(Generator::new(List::A, i as u64)).compress().to_bytes();
    (0..count).into_par_iter().flat_map_iter(encoding).collect()
}

/// From now on decodes A_0 .. A_(2^20 - 1) from these encodings, which takes less than half of the
/// time of deriving them. Malformed unless they are the right ones.
pub fn use_positions(encodings: Vec<u8>) -> Result<()> {
    if encodings.len() != KNOWN_POSITIONS * ELEMENT_BYTES {
        let bytes = encodings.len();
        let expected = KNOWN_POSITIONS * ELEMENT_BYTES;
        return Err(malformed(format!("positions: {bytes} bytes, expected {expected}")));
    }
    if Sha256::digest(&encodings)[..] != POSITIONS_DIGEST {
        return Err(malformed("positions: not the encodings of A_0 .. A_(2^20 - 1)"));
    }
    // Set before: with the same bytes.
    let _ = POSITIONS.set(encodings);
    Ok(())
}

/// A generator that is not in the cache.
fn obtain(name: Generator) -> RistrettoPoint {
    known(name).unwrap_or_else(|| derive(name))
}

fn known(name: Generator) -> Option<RistrettoPoint> {
    if name.list != List::A {
        return None;
    }
    let start = usize::try_from(name.index).ok()?.checked_mul(ELEMENT_BYTES)?;
    let encoding = POSITIONS.get()?.get(start..)?.get(..ELEMENT_BYTES)?;
    CompressedRistretto::from_slice(encoding).ok()?.decompress()
}

fn lookup(generators: &[Generator]) -> Vec<Option<RistrettoPoint>> {
    // A poisoned lock still holds only correct points: entries are inserted whole.
    let cache = CACHE.read().unwrap_or_else(|poisoned| poisoned.into_inner());
    generators.iter().map(|name| cache.get(name).copied()).collect()
}

fn remember(names: &[Generator], points: &[RistrettoPoint]) {
    if names.is_empty() {
        return;
    }
    let mut cache = CACHE.write().unwrap_or_else(|poisoned| poisoned.into_inner());
    for (name, point) in names.iter().zip(points) {
        if cache.len() >= CACHE_LIMIT {
            return;
        }
        cache.insert(*name, *point);
    }
}
