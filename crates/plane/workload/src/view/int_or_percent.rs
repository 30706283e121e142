//! A count, or a share of a count.

use serde::{Deserialize, Deserializer, de::Error};

/// `maxSurge: 1` or `maxSurge: 25%`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IntOrPercent {
    Int(i64),
    Percent(i64),
}

/// What becomes of a fraction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Round {
    Up,
    Down,
}

impl IntOrPercent {
    /// The count that this means of `total`.
    ///
    /// Source: `GetScaledValueFromIntOrPercent` in `apimachinery/pkg/util/intstr/intstr.go`, Kubernetes 1.36.
    pub(crate) fn of(self, total: i64, round: Round) -> i64 {
        match (self, round) {
            (Self::Int(count), _) => count,
            (Self::Percent(percent), Round::Up) => {
                (percent * total).div_euclid(100) + i64::from(percent * total % 100 != 0)
            }
            (Self::Percent(percent), Round::Down) => (percent * total).div_euclid(100),
        }
    }
}

impl<'de> Deserialize<'de> for IntOrPercent {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Raw {
            Int(i32),
            Text(String),
        }
        match Raw::deserialize(input)? {
            Raw::Int(count) => Ok(Self::Int(count.into())),
            Raw::Text(text) => text
                .strip_suffix('%')
                .and_then(|percent| percent.parse::<i32>().ok())
                .map(|percent| Self::Percent(percent.into()))
                .ok_or_else(|| D::Error::custom("neither a number nor a percentage")),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn percentages_round_as_asked_and_counts_stay() {
        for (value, total, up, down) in [
            (json!(3), 10, 3, 3),
            (json!("25%"), 10, 3, 2),
            (json!("25%"), 8, 2, 2),
            (json!("1%"), 1, 1, 0),
            (json!("0%"), 7, 0, 0),
            (json!("100%"), 7, 7, 7),
            (json!("200%"), 3, 6, 6),
            (json!("50%"), 0, 0, 0),
            (json!("33%"), 2_147_483_647, 708_669_604, 708_669_603),
        ] {
            let share: IntOrPercent = serde_json::from_value(value.clone()).expect("valid");
            let both = (share.of(total, Round::Up), share.of(total, Round::Down));
            assert_eq!(both, (up, down), "{value} of {total}");
        }
        for value in [json!("5"), json!("x%"), json!(1.5), json!(null)] {
            serde_json::from_value::<IntOrPercent>(value.clone()).expect_err(&value.to_string());
        }
    }
}
