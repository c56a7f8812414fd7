//! The entries of completed rows: 8 bits each where B = 127, 16 bits each where B = 4095.

use bytemuck::Pod;

use crate::errors::{Result, malformed};

/// B² of the largest rows that an argument is made for: 1 <= 4B² < 2^26.
pub const MOST_SQUARED_NORM: u32 = (1 << 24) - 1;

/// The integer type of a row's entries.
pub trait Entry: Pod + Into<i16> + Into<i32> + Into<i64> + Send + Sync {
    /// Bits of an entry's low digit when it is committed to; most entries are no larger.
    const LOW_BITS: usize;
    /// The largest high digit: entry = 2^LOW_BITS high + low, |low| <= 2^(LOW_BITS - 1).
    const MOST_HIGH: usize;

    /// The rows, whatever their type.
    fn rows(entries: &[Self]) -> SmallRows<'_>;

    /// The entry itself; malformed if the type does not hold it.
    fn checked(value: i32) -> Result<Self>;
}

impl Entry for i8 {
    const LOW_BITS: usize = 5;
    const MOST_HIGH: usize = 4;

    fn rows(entries: &[i8]) -> SmallRows<'_> {
        SmallRows::Narrow(entries)
    }

    fn checked(value: i32) -> Result<i8> {
        i8::try_from(value).map_err(|_| malformed(format!("{value} does not fit 8 bits")))
    }
}

impl Entry for i16 {
    const LOW_BITS: usize = 10;
    const MOST_HIGH: usize = 32;

    fn rows(entries: &[i16]) -> SmallRows<'_> {
        SmallRows::Wide(entries)
    }

    fn checked(value: i32) -> Result<i16> {
        i16::try_from(value).map_err(|_| malformed(format!("{value} does not fit 16 bits")))
    }
}

/// Rows of small integers, one after the other.
///
/// ```
/// use ragaudit_arguments::entries::SmallRows;
///
/// let rows = SmallRows::Wide(&[1, -2, 300, 4]);
/// assert_eq!(rows.row(1, 2).inner_product(&[10, 1]), 3004);
/// assert_eq!((rows.len(), rows.bytes().len()), (4, 8));
/// ```
#[derive(Clone, Copy)]
pub enum SmallRows<'a> {
    /// For B = 127.
    Narrow(&'a [i8]),
    /// For B = 4095.
    Wide(&'a [i16]),
}

impl<'a> SmallRows<'a> {
    /// The number of entries of all rows.
    pub fn len(&self) -> usize {
        match self {
            SmallRows::Narrow(entries) => entries.len(),
            SmallRows::Wide(entries) => entries.len(),
        }
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Row `i` of rows of `width` entries.
    pub fn row(&self, i: usize, width: usize) -> SmallRows<'a> {
        match self {
            SmallRows::Narrow(entries) => SmallRows::Narrow(&entries[i * width..][..width]),
            SmallRows::Wide(entries) => SmallRows::Wide(&entries[i * width..][..width]),
        }
    }

    /// The memory of the entries.
    pub fn bytes(&self) -> &'a [u8] {
        match self {
            SmallRows::Narrow(entries) => bytemuck::cast_slice(entries),
            SmallRows::Wide(entries) => bytemuck::cast_slice(entries),
        }
    }

    /// The inner product with other integers; the shorter length counts.
    pub fn inner_product(&self, other: &[i16]) -> i64 {
        match self {
            SmallRows::Narrow(entries) => inner_product(entries, other),
            SmallRows::Wide(entries) => inner_product(entries, other),
        }
    }

    /// Calls `each` with the place and the value of every entry.
    #[inline]
    pub fn for_each(&self, mut each: impl FnMut(usize, i64)) {
        match self {
            SmallRows::Narrow(entries) => {
                entries.iter().enumerate().for_each(|(place, x)| each(place, i64::from(*x)));
            }
            SmallRows::Wide(entries) => {
                entries.iter().enumerate().for_each(|(place, x)| each(place, i64::from(*x)));
            }
        }
    }
}

fn inner_product<E: Entry>(entries: &[E], other: &[i16]) -> i64 {
    let product = |(x, e): (&E, &i16)| -> i64 { Into::<i64>::into(*x) * i64::from(*e) };
    entries.iter().zip(other).map(product).sum()
}
