//! Which accounts asked near-identical things near in time (docs/spec/07-coalition.md §7.2).
//!
//! Vertices are accounts. Two are joined if some record of one and some record of the other are
//! near in time and their sketches differ in few bits; asked for are the connected components.
//!
//! Every pair of records that is near in time is compared, by its differing bits; indexes that look
//! near sketches up by bands do not pay at a fifth of all bits. Two things bound the work where
//! many are close. A pair of one component is no hit, however close: only joins and what other
//! threads have just joined are looked at one by one, so at most one hit for each account and
//! thread costs more than a comparison. And stretches of records that are all of one component are
//! passed over by those of the same, so one large coalition is found sooner than none.

mod components;

use std::fmt;
use std::ops::Range;

use multiversion::multiversion;
use ragaudit_arguments::progress::Progress;
use ragaudit_arguments::{Error, Result};
use rayon::prelude::*;

use crate::components::Components;

/// Records of one task. It reads the roots of a stretch once for all of them.
const BLOCK: usize = 1 << 10;

/// Records that a block is compared with at a time: four words of each and the root are 20 kB, which
/// stay in the first-level cache.
const STRETCH: usize = 1 << 9;

/// Comparisons between two reports of progress: a second or two on two cores.
const STEP: usize = 1 << 34;

/// Comparisons whose results are looked at together.
const GLANCE: usize = 64;

/// The most words of a sketch: 512 bits.
const MOST_WORDS: usize = 8;

/// The records of a window, by rising time.
pub struct Records<'a> {
    /// The account of each, from 0 on.
    pub accounts: &'a [u32],
    /// Milliseconds, rising.
    pub times: &'a [i64],
    /// Whether the time is that of a promise.
    pub anchored: &'a [bool],
    /// Sketches of `width` bytes each, one after the other.
    pub sketches: &'a [u8],
    /// Bytes of a sketch, 1 to 64.
    pub width: usize,
}

/// When two records are near: both bounds are inclusive.
#[derive(Clone, Copy)]
pub struct Near {
    /// Milliseconds between them, at least 0.
    pub tau: i64,
    /// Further milliseconds where one of the two is anchored, at least 0.
    pub life: i64,
    /// Bits in which their sketches may differ.
    pub threshold: u32,
}

impl fmt::Debug for Records<'_> {
    /// Sketches tell what was asked: only their number is shown.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Records({} of {} bytes)", self.times.len(), self.width)
    }
}

/// The smallest account of the component of each of the accounts 0 .. `accounts` - 1.
///
/// Of every pair the earlier record is in `part`, which `0..records` says of all pairs. Components
/// of parts that cover all records, put together, are those of all pairs.
///
/// ```
/// use ragaudit_arguments::progress::Silent;
/// use ragaudit_coalition::{Near, Records, components};
///
/// let records = Records {
///     accounts: &[0, 2, 1],
///     times: &[0, 10, 11],
///     anchored: &[false; 3],
///     sketches: &[0b000, 0b001, 0b011],
///     width: 1,
/// };
/// let near = Near { tau: 10, life: 0, threshold: 1 };
/// assert_eq!(components(&records, 3, near, 0..3, &Silent), Ok(vec![0, 0, 0]));
/// assert_eq!(components(&records, 3, near, 1..2, &Silent), Ok(vec![0, 1, 1]));
/// let near = Near { tau: 9, life: 0, threshold: 1 };
/// assert_eq!(components(&records, 3, near, 0..3, &Silent), Ok(vec![0, 1, 1]));
/// ```
pub fn components(
    records: &Records<'_>,
    accounts: u32,
    near: Near,
    part: Range<usize>,
    progress: &dyn Progress,
) -> Result<Vec<u32>> {
    check(records, accounts, near, &part)?;
    match records.width.div_ceil(8) {
        1 => joined::<1>(records, accounts, near, part, progress),
        2 => joined::<2>(records, accounts, near, part, progress),
        3 => joined::<3>(records, accounts, near, part, progress),
        4 => joined::<4>(records, accounts, near, part, progress),
        5 => joined::<5>(records, accounts, near, part, progress),
        6 => joined::<6>(records, accounts, near, part, progress),
        7 => joined::<7>(records, accounts, near, part, progress),
        _ => joined::<MOST_WORDS>(records, accounts, near, part, progress),
    }
}

fn check(records: &Records<'_>, accounts: u32, near: Near, part: &Range<usize>) -> Result<()> {
    let count = records.times.len();
    let malformed = |message: String| Err(Error::Malformed(message));
    if !(1..=8 * MOST_WORDS).contains(&records.width) {
        return malformed(format!("width: {} bytes, expected 1 to 64", records.width));
    }
    if records.accounts.len() != count
        || records.anchored.len() != count
        || Some(records.sketches.len()) != count.checked_mul(records.width)
    {
        return malformed("records: different numbers of accounts, times, sketches".into());
    }
    if !records.times.is_sorted() {
        return malformed("times: not rising".into());
    }
    if records.accounts.iter().any(|account| *account >= accounts) {
        return malformed(format!("accounts: one of {accounts} or more"));
    }
    if near.tau < 0 || near.life < 0 {
        return malformed("tau, life: negative".into());
    }
    if part.start > part.end || part.end > count {
        return malformed(format!("part: {part:?} of {count} records"));
    }
    Ok(())
}

fn joined<const WORDS: usize>(
    records: &Records<'_>,
    accounts: u32,
    near: Near,
    part: Range<usize>,
    progress: &dyn Progress,
) -> Result<Vec<u32>> {
    let times = records.times;
    let count = times.len();
    let all = Columns::<WORDS>::of(records, 0..count);
    let kept = || (0..count).filter(|record| records.anchored[*record]);
    let anchored = Columns::<WORDS>::of(records, kept());
    let anchored_times: Vec<i64> = kept().map(|record| times[record]).collect();
    // Times differ by less than 2^64; a sum that saturates is later than all of them.
    let end = |times: &[i64], latest: i64| times.partition_point(|time| *time <= latest);
    let soon: Vec<Range<usize>> = (0..count)
        .into_par_iter()
        .map(|record| {
            if !part.contains(&record) {
                return 0..0;
            }
            let life = if records.anchored[record] { near.life } else { 0 };
            let latest = times[record].saturating_add(near.tau).saturating_add(life);
            record + 1..end(times, latest)
        })
        .collect();
    // What is later than that is near only if itself is anchored, where this record is not.
    let later: Vec<Range<usize>> = (0..count)
        .into_par_iter()
        .map(|record| {
            if records.anchored[record] || !part.contains(&record) {
                return 0..0;
            }
            let latest = times[record].saturating_add(near.tau);
            let last = latest.saturating_add(near.life);
            end(&anchored_times, latest)..end(&anchored_times, last)
        })
        .collect();
    let components = Components::new(accounts);
    let work = |ranges: &[Range<usize>]| ranges.iter().map(|range| range.len() as u64).sum::<u64>();
    let (total, mut done) = (work(&soon) + work(&later), 0);
    for (right, ranges) in [(&all, &soon), (&anchored, &later)] {
        for lefts in steps(ranges) {
            progress.report(done as f64 / total.max(1) as f64)?;
            done += work(&ranges[lefts.clone()]);
            lefts.clone().into_par_iter().step_by(BLOCK).for_each(|start| {
                let block = start..lefts.end.min(start + BLOCK);
                link(&all, block, right, ranges, near.threshold, &components);
            });
        }
    }
    progress.report(1.0)?;
    Ok(components.labels())
}

/// Whole blocks, as many at a time as make about [`STEP`] comparisons.
fn steps(ranges: &[Range<usize>]) -> Vec<Range<usize>> {
    let (mut steps, mut start, mut compared) = (Vec::new(), 0, 0);
    for end in (BLOCK..).step_by(BLOCK).map(|end| end.min(ranges.len())) {
        let block = end.saturating_sub(1) / BLOCK * BLOCK..end;
        compared += ranges[block].iter().map(Range::len).sum::<usize>();
        if compared >= STEP || end == ranges.len() {
            steps.push(start..end);
            (start, compared) = (end, 0);
        }
        if end == ranges.len() {
            break;
        }
    }
    steps
}

/// Joins the records `lefts` with those of their range on the right whose sketches are close.
fn link<const WORDS: usize>(
    left: &Columns<WORDS>,
    lefts: Range<usize>,
    right: &Columns<WORDS>,
    ranges: &[Range<usize>],
    threshold: u32,
    components: &Components,
) {
    let reached = || ranges[lefts.clone()].iter().filter(|range| !range.is_empty());
    let start = reached().map(|range| range.start).min().unwrap_or(0) / GLANCE * GLANCE;
    let end = reached().map(|range| range.end).max().unwrap_or(0);
    let mut stretch = Stretch::new();
    let mut hits = Vec::new();
    for from in (start..end).step_by(STRETCH) {
        let to = end.min(from + STRETCH);
        stretch.read(&right.accounts[from..to], components);
        for record in lefts.clone() {
            let near = ranges[record].start.max(from)..ranges[record].end.min(to);
            let root = components.root(left.accounts[record]);
            if near.is_empty() || stretch.uniform == Some(root) {
                continue;
            }
            let glances = near.start / GLANCE..near.end.div_ceil(GLANCE);
            let base = glances.start * GLANCE;
            let roots = &stretch.roots[(base - from) / GLANCE..];
            let (sketch, glances) = (left.sketch(record), &right.glances[glances]);
            hits.clear();
            hit(&sketch, root.into(), glances, roots, threshold.into(), &mut hits);
            // The first and the last glance reach beyond the range.
            hits.retain(|found| near.contains(&(base + found)));
            if hits.is_empty() {
                continue;
            }
            for found in &hits {
                components.join(left.accounts[record], right.accounts[base + found]);
            }
            // What was just joined would be hit again by every further record.
            stretch.read(&right.accounts[from..to], components);
        }
    }
}

/// Appends the records on the right, of these glances, of another root and at most `threshold`
/// differing bits.
#[multiversion(targets(
    "x86_64+avx512f+avx512bw+avx512vl+avx512vpopcntdq",
    "x86_64+avx2+popcnt",
    "x86_64+popcnt"
))]
fn hit<const WORDS: usize>(
    sketch: &[u64; WORDS],
    root: u64,
    glances: &[Glance<WORDS>],
    roots: &[[u64; GLANCE]],
    threshold: u64,
    hits: &mut Vec<usize>,
) {
    let first = WORDS - WORDS / 4;
    for (number, (glance, roots)) in glances.iter().zip(roots).enumerate() {
        let mut found = [0; GLANCE];
        let mut any = 0;
        for position in 0..GLANCE {
            let mut distance = 0u64;
            for word in 0..first {
                let differing = (glance[word][position] ^ sketch[word]).count_ones();
                // At most 512. A sum that is checked would not be taken of several pairs at once.
                distance = distance.wrapping_add(differing.into());
            }
            found[position] = distance;
            any |= u64::from(distance <= threshold);
        }
        // Sketches of questions that are not alike are too far apart by their first words already.
        if any == 0 {
            continue;
        }
        any = 0;
        for position in 0..GLANCE {
            let mut distance = found[position];
            for word in first..WORDS {
                let differing = (glance[word][position] ^ sketch[word]).count_ones();
                distance = distance.wrapping_add(differing.into());
            }
            found[position] = u64::from((distance <= threshold) & (roots[position] != root));
            any |= found[position];
        }
        if any != 0 {
            let positions = found.iter().enumerate().filter(|(_, found)| **found != 0);
            hits.extend(positions.map(|(position, _)| number * GLANCE + position));
        }
    }
}

/// Sketches of consecutive records, word by word; zeros after the last record.
type Glance<const WORDS: usize> = [[u64; GLANCE]; WORDS];

/// Sketches and accounts of some records.
struct Columns<const WORDS: usize> {
    accounts: Vec<u32>,
    glances: Vec<Glance<WORDS>>,
}

impl<const WORDS: usize> Columns<WORDS> {
    fn of(records: &Records<'_>, chosen: impl Iterator<Item = usize>) -> Self {
        let mut columns = Columns { accounts: Vec::new(), glances: Vec::new() };
        for (number, record) in chosen.enumerate() {
            if number % GLANCE == 0 {
                columns.glances.push([[0; GLANCE]; WORDS]);
            }
            let sketch = &records.sketches[record * records.width..][..records.width];
            for (word, bytes) in sketch.chunks(8).enumerate() {
                // Zeros in both sketches do not differ: the distance stays that of the bits.
                let mut padded = [0; 8];
                padded[..bytes.len()].copy_from_slice(bytes);
                columns.glances[number / GLANCE][word][number % GLANCE] =
                    u64::from_le_bytes(padded);
            }
            columns.accounts.push(records.accounts[record]);
        }
        columns
    }

    fn sketch(&self, number: usize) -> [u64; WORDS] {
        self.glances[number / GLANCE].map(|word| word[number % GLANCE])
    }
}

/// What is known of the components of some consecutive records.
struct Stretch {
    /// As wide as words of sketches, which are compared beside them.
    roots: [[u64; GLANCE]; STRETCH / GLANCE],
    /// The root, if all have one.
    uniform: Option<u32>,
}

impl Stretch {
    fn new() -> Self {
        Stretch { roots: [[0; GLANCE]; STRETCH / GLANCE], uniform: None }
    }

    fn read(&mut self, accounts: &[u32], components: &Components) {
        let first = components.root(accounts[0]);
        self.uniform = Some(first);
        for (account, kept) in accounts.iter().zip(self.roots.as_flattened_mut()) {
            let root = components.root(*account);
            *kept = root.into();
            if root != first {
                self.uniform = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use ragaudit_arguments::progress::Silent;

    use super::*;

    /// Records with a time, an account, whether anchored, and a sketch of `width` bytes.
    struct Window {
        accounts: Vec<u32>,
        times: Vec<i64>,
        anchored: Vec<bool>,
        sketches: Vec<u8>,
        width: usize,
    }

    impl Window {
        fn records(&self) -> Records<'_> {
            Records {
                accounts: &self.accounts,
                times: &self.times,
                anchored: &self.anchored,
                sketches: &self.sketches,
                width: self.width,
            }
        }

        /// Pair by pair, as §7.2 says it.
        fn by_definition(&self, accounts: u32, near: Near) -> Vec<u32> {
            let sketch = |i: usize| &self.sketches[i * self.width..][..self.width];
            let mut labels: Vec<u32> = (0..accounts).collect();
            for i in 0..self.times.len() {
                for j in 0..i {
                    let differing: u32 =
                        sketch(i).iter().zip(sketch(j)).map(|(a, b)| (a ^ b).count_ones()).sum();
                    let life = if self.anchored[i] || self.anchored[j] { near.life } else { 0 };
                    if self.times[i] - self.times[j] <= near.tau + life
                        && differing <= near.threshold
                    {
                        let a = labels[self.accounts[i] as usize];
                        let b = labels[self.accounts[j] as usize];
                        let least = a.min(b);
                        labels.iter_mut().filter(|l| **l == a || **l == b).for_each(|l| *l = least);
                    }
                }
            }
            labels
        }
    }

    /// Numbers that look random.
    struct Numbers(u64);

    impl Numbers {
        fn below(&mut self, bound: u64) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0 % bound
        }
    }

    /// Sketches at few bits from one of a few centres, so that many pairs lie at the threshold.
    fn window(numbers: &mut Numbers, count: usize, accounts: u32, width: usize) -> Window {
        let centres: Vec<u8> = (0..4 * width).map(|_| numbers.below(256) as u8).collect();
        let mut times: Vec<i64> = (0..count).map(|_| numbers.below(3000) as i64 - 1500).collect();
        times.sort_unstable();
        let mut sketches = Vec::new();
        for _ in 0..count {
            let centre = width * numbers.below(4) as usize;
            let mut sketch = centres[centre..centre + width].to_vec();
            for _ in 0..numbers.below(6) {
                sketch[numbers.below(width as u64) as usize] ^= 1 << numbers.below(8);
            }
            sketches.extend(sketch);
        }
        Window {
            accounts: (0..count).map(|_| numbers.below(accounts.into()) as u32).collect(),
            anchored: (0..count).map(|_| numbers.below(3) == 0).collect(),
            times,
            sketches,
            width,
        }
    }

    #[test]
    fn every_pair_is_compared_as_defined() {
        let numbers = &mut Numbers(7);
        let counts = [0, 1, 2, 63, 64, 65, STRETCH - 1, STRETCH + 1, BLOCK + 70];
        for (turn, count) in counts.into_iter().cycle().take(72).enumerate() {
            let width = [1, 8, 9, 16, 24, 32, 40, 64][turn % 8];
            let accounts = [2, 40, 2000][turn % 3];
            let found = window(numbers, count, accounts, width);
            let near = Near {
                tau: [0, 1, 40, 5000][turn % 4],
                life: [0, 25, 1000][turn / 4 % 3],
                threshold: [0, 2, 5, 8][turn / 2 % 4],
            };
            let expected = found.by_definition(accounts, near);
            assert_eq!(
                components(&found.records(), accounts, near, 0..count, &Silent).unwrap(),
                expected
            );
            // In two parts, each from the first record on or to the last one.
            let cut = numbers.below(count as u64 + 1) as usize;
            let both = Components::new(accounts);
            for part in [0..cut, cut..count] {
                let labels = components(&found.records(), accounts, near, part, &Silent).unwrap();
                (0..accounts).zip(labels).for_each(|(account, label)| both.join(account, label));
            }
            assert_eq!(both.labels(), expected);
        }
    }

    #[test]
    fn all_alike_are_one_whatever_the_order_of_their_accounts() {
        let count = 3 * BLOCK as u32 + 5;
        let found = Window {
            accounts: (0..count).map(|i| i.wrapping_mul(40503) % count).collect(),
            times: vec![0; count as usize],
            anchored: vec![false; count as usize],
            sketches: vec![0xa5; 32 * count as usize],
            width: 32,
        };
        let near = Near { tau: 0, life: 0, threshold: 0 };
        let labels = components(&found.records(), count, near, 0..count as usize, &Silent).unwrap();
        let named: Vec<bool> =
            (0..count).map(|account| found.accounts.contains(&account)).collect();
        let first = named.iter().position(|named| *named).unwrap() as u32;
        for (account, label) in labels.iter().enumerate() {
            let expected = if named[account] { first } else { account as u32 };
            assert_eq!(*label, expected);
        }
    }

    #[test]
    fn the_greatest_times_and_bounds_do_not_overflow() {
        let found = Window {
            accounts: vec![0, 1],
            times: vec![i64::MAX - 1, i64::MAX],
            anchored: vec![true, false],
            sketches: vec![0, 0xff],
            width: 1,
        };
        let all = Near { tau: i64::MAX, life: i64::MAX, threshold: u32::MAX };
        assert_eq!(components(&found.records(), 2, all, 0..2, &Silent).unwrap(), [0, 0]);
        let apart = Near { threshold: 7, ..all };
        assert_eq!(components(&found.records(), 2, apart, 0..2, &Silent).unwrap(), [0, 1]);
    }

    #[test]
    fn steps_are_whole_blocks_and_leave_nothing_out() {
        let ranges: Vec<Range<usize>> = vec![0..STEP / BLOCK / 2; 5 * BLOCK + 3];
        let found = steps(&ranges);
        let expected = [0..2 * BLOCK, 2 * BLOCK..4 * BLOCK, 4 * BLOCK..5 * BLOCK + 3];
        assert_eq!(found, expected);
        assert_eq!(steps(&[]), vec![Range { start: 0, end: 0 }]);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let near = Near { tau: 0, life: 0, threshold: 0 };
        let good = window(&mut Numbers(3), 10, 5, 8);
        let refused = |window: Window, near: Near| {
            assert!(components(&window.records(), 5, near, 0..10, &Silent).is_err());
        };
        refused(Window { width: 0, ..window(&mut Numbers(3), 10, 5, 8) }, near);
        refused(window(&mut Numbers(3), 10, 5, 65), near);
        refused(Window { width: 7, ..window(&mut Numbers(3), 10, 5, 8) }, near);
        refused(Window { anchored: vec![], ..window(&mut Numbers(3), 10, 5, 8) }, near);
        refused(Window { accounts: vec![5; 10], ..window(&mut Numbers(3), 10, 5, 8) }, near);
        refused(
            Window { times: (0..10).rev().collect(), ..window(&mut Numbers(3), 10, 5, 8) },
            near,
        );
        refused(window(&mut Numbers(3), 10, 5, 8), Near { tau: -1, ..near });
        refused(window(&mut Numbers(3), 10, 5, 8), Near { life: -1, ..near });
        for (part, fits) in [(0..10, true), (3..3, true), (0..11, false)] {
            assert_eq!(components(&good.records(), 5, near, part, &Silent).is_ok(), fits);
        }
        assert_eq!(format!("{:?}", good.records()), "Records(10 of 8 bytes)");
    }
}
