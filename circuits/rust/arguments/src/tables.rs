//! Tables over {0,1}^m with a mask row, bound one variable at a time (spec 4.1.3, 4.5).

use rayon::prelude::*;
use zeroize::Zeroize;

use crate::field::Element;

/// Entries that one task binds at least.
const TASK: usize = 1 << 10;

/// The multilinear extension of a table of length 2^m that is `entries` at the start, `mask` at
/// index 2^m - 1 and zero between. The zeros are not stored.
///
/// ```
/// use ragaudit_arguments::field::Element;
/// use ragaudit_arguments::tables::MaskedTable;
///
/// let [one, two, mask] = [1, 2, 9].map(Element::from_integer);
/// let mut table = MaskedTable::new(vec![one, two], mask, 2); // 1, 2, 0, 9
/// assert_eq!(table.pair(1), (two, mask));
/// table.bind(&Element::from_integer(2)); // 1 + 2 (0 - 1), 2 + 2 (9 - 2)
/// assert_eq!(table.entries(), [-one]);
/// assert_eq!(table.mask(), Element::from_integer(16));
/// ```
pub struct MaskedTable {
    entries: Vec<Element>,
    mask: Element,
    variables: usize,
}

impl MaskedTable {
    /// A table of 2^variables entries; `entries` must not reach the mask row.
    pub fn new(entries: Vec<Element>, mask: Element, variables: usize) -> Self {
        debug_assert!(entries.len() < 1 << variables);
        MaskedTable { entries, mask, variables }
    }

    /// A table without a mask row: `entries`, which may fill it, and zeros.
    pub fn whole(mut entries: Vec<Element>, variables: usize) -> Self {
        debug_assert!(entries.len() <= 1 << variables);
        let mask = if entries.len() == 1 << variables { entries.pop() } else { None };
        MaskedTable::new(entries, mask.unwrap_or_default(), variables)
    }

    /// The stored entries: the table without mask row and pads.
    pub fn entries(&self) -> &[Element] {
        &self.entries
    }

    /// The mask row while variables remain; the value of the extension at the bound point after.
    pub fn mask(&self) -> Element {
        self.mask
    }

    /// Values at 0 and 1 of the line through index `i` along the next variable.
    pub fn pair(&self, i: usize) -> (Element, Element) {
        let half = 1 << (self.variables - 1);
        let high = if i == half - 1 { self.mask } else { self.entry(half + i) };
        (self.entry(i), high)
    }

    /// Binds the next variable (the most significant bit) to `r`.
    pub fn bind(&mut self, r: &Element) {
        let half = 1 << (self.variables - 1);
        let line = |(low, high): (Element, Element)| low + *r * (high - low);
        let mask = line(self.pair(half - 1));
        let kept = self.entries.len().min(half - 1);
        let stored = self.entries.len();
        let (low, high) = self.entries.split_at_mut(half.min(stored));
        let paired = high.len().min(kept);
        low[..paired]
            .par_iter_mut()
            .with_min_len(TASK)
            .zip(&*high)
            .for_each(|(low, high)| *low = line((*low, *high)));
        low[paired..kept].iter_mut().for_each(|low| *low = line((*low, Element::ZERO)));
        self.entries[kept..].iter_mut().zeroize();
        self.entries.truncate(kept);
        self.mask = mask;
        self.variables -= 1;
    }

    fn entry(&self, i: usize) -> Element {
        self.entries.get(i).copied().unwrap_or(Element::ZERO)
    }
}

impl Drop for MaskedTable {
    fn drop(&mut self) {
        self.entries.zeroize();
        self.mask.zeroize();
    }
}

/// A masked table whose entries are bits until its first variable is bound.
///
/// ```
/// use ragaudit_arguments::field::Element;
/// use ragaudit_arguments::tables::BitTable;
///
/// let mask = Element::from_integer(9);
/// let mut table = BitTable::Bits(&[true, false], mask, 2); // 1, 0, 0, 9
/// assert_eq!((table.bits(0), table.bits(1)), (Some((true, false)), None));
/// table.bind(&Element::ONE);
/// assert_eq!((table.pair(0), table.bits(0)), ((Element::ZERO, mask), None));
/// ```
pub enum BitTable<'a> {
    /// Nothing is bound: the entries, the mask row and the number of variables.
    Bits(&'a [bool], Element, usize),
    /// The table after that.
    Bound(MaskedTable),
}

impl BitTable<'_> {
    /// See [`MaskedTable::mask`].
    pub fn mask(&self) -> Element {
        match self {
            BitTable::Bits(_, mask, _) => *mask,
            BitTable::Bound(table) => table.mask(),
        }
    }

    /// The bits at 0 and 1 of the line through index `i`, unless the line is no longer one of
    /// bits: something is bound, or it is the line of the mask row.
    pub fn bits(&self, i: usize) -> Option<(bool, bool)> {
        match self {
            BitTable::Bits(bits, _, variables) => {
                let half = 1 << (variables - 1);
                let bit = |index: usize| bits.get(index).copied().unwrap_or(false);
                (i != half - 1).then(|| (bit(i), bit(half + i)))
            }
            BitTable::Bound(_) => None,
        }
    }

    /// See [`MaskedTable::pair`].
    pub fn pair(&self, i: usize) -> (Element, Element) {
        match self {
            BitTable::Bits(bits, mask, _) => match self.bits(i) {
                Some((low, high)) => (Element::from_bit(low), Element::from_bit(high)),
                None => (Element::from_bit(bits.get(i).copied().unwrap_or(false)), *mask),
            },
            BitTable::Bound(table) => table.pair(i),
        }
    }

    /// See [`MaskedTable::bind`].
    pub fn bind(&mut self, r: &Element) {
        let BitTable::Bits(bits, _, variables) = self else {
            if let BitTable::Bound(table) = self {
                table.bind(r);
            }
            return;
        };
        let half = 1 << (*variables - 1);
        let kept = bits.len().min(half - 1);
        let rest = Element::ONE - *r;
        // low (1 - r) + high r, without a branch on the bits.
        let bound = (0..kept).into_par_iter().with_min_len(TASK).map(|i| {
            let high = bits.get(half + i).copied().unwrap_or(false);
            rest.keep_if(u64::from(bits[i])) + r.keep_if(u64::from(high))
        });
        let (entries, variables) = (bound.collect(), *variables - 1);
        let (low, high) = self.pair(half - 1);
        let mask = low + *r * (high - low);
        *self = BitTable::Bound(MaskedTable { entries, mask, variables });
    }
}

/// Indices of the lines along the next variable that can be nonzero, for tables of `stored`
/// entries: the lines through an entry, and the line of the mask row.
///
/// ```
/// assert_eq!(ragaudit_arguments::tables::lines(2, 4), [0, 1, 7]);
/// ```
pub fn lines(stored: usize, variables: usize) -> Vec<usize> {
    let last = (1 << (variables - 1)) - 1;
    (0..stored.min(last)).chain([last]).collect()
}

/// The values at 0, 1, .., count - 1 of the line with these values at 0 and 1.
///
/// ```
/// use ragaudit_arguments::field::Element;
/// use ragaudit_arguments::tables::extend;
///
/// let line: [Element; 4] = extend((Element::from_integer(5), Element::from_integer(8)));
/// assert_eq!(line, [5, 8, 11, 14].map(Element::from_integer));
/// ```
pub fn extend<const COUNT: usize>((low, high): (Element, Element)) -> [Element; COUNT] {
    let slope = high - low;
    let mut value = low;
    std::array::from_fn(|_| {
        let current = value;
        value += slope;
        current
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::inner_product;
    use crate::multilinear::{eq_mask_row, eq_table};

    #[test]
    fn binding_all_variables_evaluates_the_extension() {
        for variables in 1..6usize {
            for stored in 0..(1 << variables) {
                let entries: Vec<Element> =
                    (0..stored).map(|i| Element::from_integer(3 + 7 * i as i64)).collect();
                let mask = Element::from_integer(1_000_003);
                let r: Vec<Element> =
                    (0..variables).map(|k| Element::from_integer(-(11 << 40) - k as i64)).collect();
                let mut table = MaskedTable::new(entries.clone(), mask, variables);
                r.iter().for_each(|r_k| table.bind(r_k));
                let expected = inner_product(&entries, &eq_table(&Element::ONE, &r, stored))
                    + mask * eq_mask_row(&r);
                assert_eq!(table.mask(), expected);
            }
        }
    }

    #[test]
    fn whole_tables_are_their_entries() {
        for variables in 1..5usize {
            for stored in 1..=(1 << variables) {
                let entries: Vec<Element> =
                    (0..stored).map(|i| Element::from_integer(3 + 7 * i as i64)).collect();
                let r: Vec<Element> =
                    (0..variables).map(|k| Element::from_integer(-(11 << 40) - k as i64)).collect();
                let mut table = MaskedTable::whole(entries.clone(), variables);
                r.iter().for_each(|r_k| table.bind(r_k));
                let weights = eq_table(&Element::ONE, &r, stored);
                assert_eq!(table.mask(), inner_product(&entries, &weights));
            }
        }
    }

    #[test]
    fn tables_of_bits_are_tables_of_their_elements() {
        for variables in 1..6usize {
            for stored in 0..(1 << variables) {
                let bits: Vec<bool> = (0..stored).map(|i| i * i % 3 == 1).collect();
                let entries = bits.iter().map(|bit| Element::from_bit(*bit)).collect();
                let mask = Element::from_integer(77);
                let mut plain = MaskedTable::new(entries, mask, variables);
                let mut table = BitTable::Bits(&bits, mask, variables);
                for bound in 0..variables {
                    let lines = 1 << (variables - bound - 1);
                    for i in 0..lines {
                        assert_eq!(table.pair(i), plain.pair(i));
                        assert_eq!(table.bits(i).is_some(), bound == 0 && i != lines - 1);
                    }
                    let r = Element::from_integer(-5 - bound as i64);
                    table.bind(&r);
                    plain.bind(&r);
                }
                assert_eq!(table.mask(), plain.mask());
            }
        }
    }

    #[test]
    fn lines_cover_every_stored_value_once() {
        for variables in 1..6usize {
            for stored in 0..(1usize << variables) {
                let entries = vec![Element::ONE; stored];
                let table = MaskedTable::new(entries, Element::from_integer(100), variables);
                let total: Element = lines(stored, variables)
                    .into_iter()
                    .map(|i| table.pair(i))
                    .map(|(low, high)| low + high)
                    .sum();
                assert_eq!(total, Element::from_integer(100 + stored as i64));
            }
        }
    }
}
