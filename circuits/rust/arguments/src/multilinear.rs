//! Functions over {0,1}^m that are products of one factor per bit, and their tables.
//!
//! Bit 1 is the most significant of the m bits of an index, as everywhere (spec 4.1.3).

use rayon::prelude::*;

use crate::field::Element;

/// Entries that one task computes; smaller tables are made by one task.
const TASK: usize = 1 << 12;

/// scale · eq(r, i) for 0 <= i < count <= 2^m.
///
/// ```
/// use ragaudit_arguments::field::Element;
/// use ragaudit_arguments::multilinear::{eq_mask_row, eq_sum, eq_table};
///
/// let r = [3, 5].map(Element::from_integer);
/// let table = eq_table(&Element::ONE, &r, 4);
/// assert_eq!(table, [8, -10, -12, 15].map(Element::from_integer)); // bit 1 on top
/// assert_eq!(eq_sum(&r, 3), Element::from_integer(-14));
/// assert_eq!(eq_mask_row(&r), table[3]);
/// ```
pub fn eq_table(scale: &Element, r: &[Element], count: usize) -> Vec<Element> {
    table(scale, r, count, |value, r_k| {
        let high = value * r_k;
        (value - high, high)
    })
}

/// scale · s_i for 0 <= i < count <= 2^k: s_i is the product of the c of those rounds in which the
/// bit of i is 1.
///
/// ```
/// use ragaudit_arguments::field::Element;
/// use ragaudit_arguments::multilinear::folding_table;
///
/// let folds = [3, 5].map(Element::from_integer);
/// let table = folding_table(&Element::ONE, &folds, 4);
/// assert_eq!(table, [1, 5, 3, 15].map(Element::from_integer));
/// ```
pub fn folding_table(scale: &Element, folds: &[Element], count: usize) -> Vec<Element> {
    table(scale, folds, count, |value, c| (value, value * c))
}

/// The first `count` values of a function given by what each bit makes of a value.
fn table(
    scale: &Element,
    challenges: &[Element],
    count: usize,
    split: impl Fn(Element, Element) -> (Element, Element) + Sync,
) -> Vec<Element> {
    debug_assert!(count <= 1 << challenges.len());
    let expand = |start: Element, challenges: &[Element], count: usize| {
        let mut values = Vec::with_capacity(count.max(1));
        values.push(start);
        for (bound, challenge) in challenges.iter().enumerate() {
            // Prefixes that an index below `count` can have after this bit.
            let kept = count.div_ceil(1 << (challenges.len() - bound - 1)).max(1);
            let prefixes = values.len();
            values.resize(kept, Element::ZERO);
            for i in (0..prefixes).rev() {
                let (low, high) = split(values[i], *challenge);
                if let Some(value) = values.get_mut(2 * i + 1) {
                    *value = high;
                }
                values[2 * i] = low;
            }
        }
        values.truncate(count);
        values
    };
    let later = challenges.len().min(TASK.trailing_zeros() as usize);
    let (first, last) = challenges.split_at(challenges.len() - later);
    let prefixes = expand(*scale, first, count.div_ceil(1 << later));
    let mut values = vec![Element::ZERO; count];
    values.par_chunks_mut(1 << later).zip(prefixes).for_each(|(part, prefix)| {
        part.copy_from_slice(&expand(prefix, last, part.len()));
    });
    values
}

/// The sum over i < count of the product of `factors[k][bit k of i]`, in m steps.
///
/// ```
/// use ragaudit_arguments::field::Element;
/// use ragaudit_arguments::multilinear::prefix_sum;
///
/// let factors = [[1, 2], [10, 20]].map(|pair| pair.map(Element::from_integer));
/// assert_eq!(prefix_sum(&factors, 3), Element::from_integer(10 + 20 + 2 * 10));
/// ```
pub fn prefix_sum(factors: &[[Element; 2]], count: usize) -> Element {
    // After the loop: sums[k] is the sum over all indices of the last m - k bits.
    let mut sums = vec![Element::ONE];
    for [low, high] in factors.iter().rev() {
        let later = sums[sums.len() - 1];
        sums.push(later * (*low + *high));
    }
    sums.reverse();
    if count >> factors.len() != 0 {
        return sums[0];
    }
    let mut total = Element::ZERO;
    let mut prefix = Element::ONE;
    for (k, [low, high]) in factors.iter().enumerate() {
        if (count >> (factors.len() - k - 1)) & 1 == 1 {
            total += prefix * *low * sums[k + 1];
            prefix *= *high;
        } else {
            prefix *= *low;
        }
    }
    total
}

/// sum over i < count of eq(r, i).
pub fn eq_sum(r: &[Element], count: usize) -> Element {
    let factors: Vec<[Element; 2]> = r.iter().map(|r_k| [Element::ONE - *r_k, *r_k]).collect();
    prefix_sum(&factors, count)
}

/// sum over i < count of eq(t, i) eq(r, i).
///
/// ```
/// use ragaudit_arguments::field::Element;
/// use ragaudit_arguments::multilinear::eq_product_sum;
///
/// let (t, r) = ([Element::from_integer(3)], [Element::from_integer(5)]);
/// assert_eq!(eq_product_sum(&t, &r, 1), Element::from_integer((1 - 3) * (1 - 5)));
/// ```
pub fn eq_product_sum(t: &[Element], r: &[Element], count: usize) -> Element {
    let factor = |(t_k, r_k): (&Element, &Element)| {
        [(Element::ONE - *t_k) * (Element::ONE - *r_k), *t_k * *r_k]
    };
    prefix_sum(&t.iter().zip(r).map(factor).collect::<Vec<_>>(), count)
}

/// eq(r, 2^m - 1): the weight of the mask row.
pub fn eq_mask_row(r: &[Element]) -> Element {
    r.iter().copied().product()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::inner_product;

    fn challenges(count: usize, seed: i64) -> Vec<Element> {
        let base = Element::from_integer(seed);
        crate::field::powers(&(base * base + Element::from_integer(seed - 5)), count)
    }

    fn bit(index: usize, k: usize, variables: usize) -> bool {
        (index >> (variables - 1 - k)) & 1 == 1
    }

    fn eq(r: &[Element], index: usize) -> Element {
        let factor = |(k, r_k): (usize, &Element)| {
            if bit(index, k, r.len()) { *r_k } else { Element::ONE - *r_k }
        };
        r.iter().enumerate().map(factor).product()
    }

    #[test]
    fn tables_and_sums_are_those_of_their_definitions() {
        for variables in [1, 2, 5] {
            let (r, t) = (challenges(variables, 11), challenges(variables, 23));
            let scale = Element::from_integer(-7);
            for count in 0..=(1 << variables) {
                let table = eq_table(&scale, &r, count);
                let expected: Vec<Element> = (0..count).map(|i| scale * eq(&r, i)).collect();
                assert_eq!(table, expected);
                let folded: Vec<Element> = (0..count)
                    .map(|i| {
                        let kept = (0..variables).filter(|k| bit(i, *k, variables));
                        scale * kept.map(|k| r[k]).product()
                    })
                    .collect();
                assert_eq!(folding_table(&scale, &r, count), folded);
                assert_eq!(scale * eq_sum(&r, count), table.iter().sum());
                let other = eq_table(&Element::ONE, &t, count);
                assert_eq!(scale * eq_product_sum(&t, &r, count), inner_product(&table, &other));
            }
            assert_eq!(eq_mask_row(&r), eq(&r, (1 << variables) - 1));
        }
    }

    #[test]
    fn tables_of_many_tasks_agree_with_their_sums() {
        let r = challenges(14, 3);
        for count in [TASK - 1, TASK, TASK + 1, 3 * TASK + 17, 1 << 14] {
            let table = eq_table(&Element::ONE, &r, count);
            assert_eq!(table.len(), count);
            assert_eq!(table.iter().sum::<Element>(), eq_sum(&r, count));
            for index in [0, 1, count / 2, count - 1] {
                assert_eq!(table[index], eq(&r, index));
            }
        }
    }
}
