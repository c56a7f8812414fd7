//! The ways to lie about a selection, for any statement with an uncertain row.

use curve25519_dalek::scalar::Scalar;
use ragaudit_arguments::Result;
use ragaudit_arguments::encoding::decode_scalar;
use ragaudit_arguments::selection::statement::{Case, Threshold};
use ragaudit_arguments::selection::{Statement, Ties};

use crate::honest::{Record, noised};
use crate::selection::{Rows, Strategy, prove};

/// A lie, named by what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lie {
    /// The last rows in place of the first, each row with a threshold of its own.
    OwnThresholds,
    /// The right rows are proven, the last ones are in B_sel; the difference hides in D_m.
    OtherSelection,
    /// The last selected row is left out and counts as two ties.
    TiedTwice,
    /// The last selected row is left out; the tie that stands in for it is none.
    NoTie,
    /// The last selected row is left out; no row is at the threshold.
    NoThresholdRow,
    /// The last selected row is left out; nothing stands in for it.
    TooFew,
    /// The last selected row is left out; the mask row is at the threshold.
    TieOnTheMaskRow,
    /// One row more than the right ones, the threshold at the next value.
    TooMany,
}

/// All of them.
pub const LIES: [Lie; 8] = [
    Lie::OwnThresholds,
    Lie::OtherSelection,
    Lie::TiedTwice,
    Lie::NoTie,
    Lie::NoThresholdRow,
    Lie::TooFew,
    Lie::TieOnTheMaskRow,
    Lie::TooMany,
];

/// The rows of U by falling y.
struct Ranking {
    /// Places in U, best first.
    order: Vec<usize>,
    /// y by place.
    values: Vec<i64>,
    /// K - f.
    remaining: usize,
    ties: Ties,
}

impl Ranking {
    fn new(threshold: &Threshold, noised: &[i64], top_k: u64) -> Self {
        let value = |position: u64| noised[position as usize];
        let values: Vec<i64> = threshold.uncertain.iter().map(|row| value(row.position)).collect();
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_by_key(|place| std::cmp::Reverse(values[*place]));
        let remaining = threshold.remaining(top_k) as usize;
        Ranking { order, values, remaining, ties: threshold.relation.ties }
    }

    fn value(&self, rank: usize) -> i64 {
        self.values[self.order[rank]]
    }

    /// A column that is true on the rows of these ranks.
    fn column(&self, ranks: impl IntoIterator<Item = usize>) -> Vec<bool> {
        let mut column = vec![false; self.order.len()];
        ranks.into_iter().for_each(|rank| column[self.order[rank]] = true);
        column
    }

    /// The truth.
    fn honest(&self) -> Strategy {
        match self.ties {
            Ties::Dropped => self.honest_dropping(),
            Ties::Kept => self.honest_keeping(),
        }
    }

    fn honest_keeping(&self) -> Strategy {
        let boundary = self.value(self.remaining - 1);
        let count = (0..self.order.len()).filter(|rank| self.value(*rank) >= boundary).count();
        let tied = self.remaining - 1..count - 1;
        let bits = [self.column(0..count), self.column([count - 1]), self.column(tied)];
        Strategy::new(bits, boundary)
    }

    fn honest_dropping(&self) -> Strategy {
        let boundary = self.value(self.remaining);
        let above = (0..self.order.len()).filter(|rank| self.value(*rank) > boundary).count();
        let tied = above + 1..self.remaining + 1;
        let bits = [self.column(0..above), self.column([above]), self.column(tied)];
        Strategy::new(bits, boundary + 1)
    }

    /// The last rows, as many as the right ones.
    fn last(&self) -> Vec<bool> {
        self.column(self.order.len() - self.remaining..self.order.len())
    }

    /// The strategy and the column of selected rows that B_sel is to hold.
    ///
    /// `None` where the statement leaves no room for the lie.
    fn strategy(&self, lie: Lie) -> Option<(Strategy, Vec<bool>)> {
        if self.ties == Ties::Kept && !matches!(lie, Lie::OwnThresholds | Lie::OtherSelection) {
            return self.miscount_kept(lie);
        }
        let room = self.remaining;
        // Of rows that are all selected, as only kept ties allow, none is left to take instead.
        if (room == 0 && lie != Lie::TooMany) || room == self.order.len() {
            return None;
        }
        if lie == Lie::TooMany {
            let more = room + 1;
            let value = if more < self.order.len() { self.value(more) } else { self.value(room) };
            let tie = self.column((more < self.order.len()).then_some(more));
            let bits = [self.column(0..more), tie, self.column([])];
            return Some((Strategy::new(bits.clone(), value + 1), bits[0].clone()));
        }
        if lie == Lie::OwnThresholds {
            let selected = self.last();
            let tie = match self.ties {
                Ties::Dropped => 0,
                Ties::Kept => self.order.len() - 1,
            };
            let bits = [selected.clone(), self.column([tie]), self.column([])];
            let mut strategy = Strategy::new(bits, self.value(room) + 1);
            let wanted = |selected: bool| if selected { 0 } else { -1 };
            strategy.shifts = (self.values.iter().zip(&selected))
                .map(|(value, selected)| wanted(*selected) - (value - strategy.tau))
                .collect();
            return Some((strategy, selected));
        }
        if lie == Lie::OtherSelection {
            let (mut strategy, committed) = (self.honest(), self.last());
            let bit = |selected: &bool| Scalar::from(u8::from(*selected));
            let pairs = strategy.bits[0].iter().zip(&committed);
            strategy.selection_difference = pairs.map(|(b, c)| bit(b) - bit(c)).collect();
            return Some((strategy, committed));
        }
        let (first, further): (Option<usize>, Option<usize>) = match lie {
            Lie::TiedTwice => (Some(room - 1), Some(room - 1)),
            Lie::NoTie => (Some(room - 1), Some(room)),
            Lie::TooFew => (Some(room - 1), None),
            _ => (None, Some(room - 1)),
        };
        let selected = self.column(0..room - 1);
        let bits = [selected.clone(), self.column(first), self.column(further)];
        let mut strategy = Strategy::new(bits, self.value(room - 1) + 1);
        if lie == Lie::TieOnTheMaskRow {
            strategy.masks = [Scalar::ZERO, Scalar::ONE, Scalar::ZERO].map(Some).to_vec();
        }
        Some((strategy, selected))
    }

    /// Where ties are kept: the row after the last one is selected too, or for
    /// [`Lie::TooMany`], whose sense is then the reverse, the last one is not.
    fn miscount_kept(&self, lie: Lie) -> Option<(Strategy, Vec<bool>)> {
        let room = self.remaining;
        if lie == Lie::TooMany {
            let tie = room.checked_sub(2)?;
            let bits = [self.column(0..room - 1), self.column([tie]), self.column([])];
            return Some((Strategy::new(bits.clone(), self.value(tie)), bits[0].clone()));
        }
        if room == self.order.len() {
            return None;
        }
        let (first, further): (Option<usize>, Option<usize>) = match lie {
            Lie::TiedTwice => (Some(room), Some(room)),
            Lie::NoTie => (Some(room), Some(room - 1)),
            Lie::TooFew => (Some(room), None),
            _ => (None, Some(room)),
        };
        let selected = self.column(0..room + 1);
        let bits = [selected.clone(), self.column(first), self.column(further)];
        let mut strategy = Strategy::new(bits, self.value(room));
        if lie == Lie::TieOnTheMaskRow {
            strategy.masks = [Scalar::ZERO, Scalar::ONE, Scalar::ZERO].map(Some).to_vec();
        }
        Some((strategy, selected))
    }
}

/// A record that tells the lie about `record`'s statement, with its proof.
///
/// `None` where there is nothing to choose, no room for the lie, or where it happens to be true.
pub fn tell<'a>(lie: Lie, record: &Record<'a>) -> Result<Option<(Record<'a>, Vec<u8>)>> {
    let noised = noised(record.index, &record.query, &record.noise);
    let statement = Statement::new(&record.instance())?;
    let Case::Threshold(threshold) = &statement.case else { return Ok(None) };
    let ranking = Ranking::new(threshold, &noised, record.top_k);
    let Some((strategy, column)) = ranking.strategy(lie) else { return Ok(None) };
    let chosen = threshold.uncertain.iter().zip(&column).filter(|(_, selected)| **selected);
    let mut selected = threshold.certain.clone();
    selected.extend(chosen.map(|(row, _)| row.position));
    selected.sort_unstable();
    let mut right = record.selected.clone();
    right.sort_unstable();
    if selected == right {
        return Ok(None);
    }
    let false_record = record.with_selection(selected);
    let rows = Rows {
        entries: &record.index.rows,
        blindings: &record.index.blindings,
        width: record.index.dimension + 4,
    };
    let blinding = decode_scalar(&false_record.blinding, "blinding")?;
    let statement = Statement::new(&false_record.instance())?;
    let proof = prove(&statement, &rows, &noised, &blinding, &strategy)?;
    Ok(Some((false_record, proof)))
}

/// The right selection, proven by the prover of the lies: it is as able as the honest one.
pub fn tell_the_truth(record: &Record) -> Result<Option<Vec<u8>>> {
    let noised = noised(record.index, &record.query, &record.noise);
    let statement = Statement::new(&record.instance())?;
    let Case::Threshold(threshold) = &statement.case else { return Ok(None) };
    let strategy = Ranking::new(threshold, &noised, record.top_k).honest();
    let rows = Rows {
        entries: &record.index.rows,
        blindings: &record.index.blindings,
        width: record.index.dimension + 4,
    };
    let blinding = decode_scalar(&record.blinding, "blinding")?;
    prove(&statement, &rows, &noised, &blinding, &strategy).map(Some)
}
