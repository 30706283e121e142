//! Amounts of resources as numbers one can compare and divide.
//!
//! The schema keeps quantities as text in their canonical form; here is only the arithmetic.

use std::str::FromStr;

const NANOS_PER_UNIT: i128 = 1_000_000_000;

/// An amount in billionths of its unit, the finest step Kubernetes knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Quantity {
    nanos: i128,
}

/// Text that is no quantity, or one too large to compute with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a quantity")]
pub struct NotAQuantity;

impl Quantity {
    /// A whole number of units.
    pub const fn whole(units: i64) -> Self {
        Self {
            nanos: units as i128 * NANOS_PER_UNIT,
        }
    }

    /// How many `divisor`s it takes to hold this amount, rounded up; a divisor of zero counts as one.
    ///
    /// Source: `pkg/api/v1/resource/helpers.go` (`convertResource…ToString`), Kubernetes 1.36.
    pub fn div_ceil(self, divisor: Quantity) -> i128 {
        let divisor = if divisor.nanos == 0 {
            NANOS_PER_UNIT
        } else {
            divisor.nanos
        };
        let whole = self.nanos.div_euclid(divisor);
        whole + i128::from(self.nanos.rem_euclid(divisor) != 0)
    }

    /// Whether it is below zero.
    pub fn is_negative(self) -> bool {
        self.nanos < 0
    }

    /// Whether it is a whole number of units.
    pub fn is_whole(self) -> bool {
        self.nanos % NANOS_PER_UNIT == 0
    }
}

impl FromStr for Quantity {
    type Err = NotAQuantity;

    fn from_str(text: &str) -> Result<Self, NotAQuantity> {
        let suffix_at = text
            .find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | '+' | '-'))
            .unwrap_or(text.len());
        let (number, suffix) = text.split_at(suffix_at);
        let scale = scale(suffix).ok_or(NotAQuantity)?;
        let (number, negative) = match number.strip_prefix('-') {
            Some(rest) => (rest, true),
            None => (number.strip_prefix('+').unwrap_or(number), false),
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let digits = format!("{whole}{fraction}");
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(NotAQuantity);
        }
        let unscaled: i128 = digits.parse().map_err(|_| NotAQuantity)?;
        let places = u32::try_from(fraction.len()).map_err(|_| NotAQuantity)?;
        let divisor = 10_i128.checked_pow(places).ok_or(NotAQuantity)?;
        let scaled = unscaled.checked_mul(scale).ok_or(NotAQuantity)?;
        let nanos = scaled.div_euclid(divisor) + i128::from(scaled.rem_euclid(divisor) != 0);
        Ok(Self {
            nanos: if negative { -nanos } else { nanos },
        })
    }
}

/// Billionths in one unit of a suffix.
fn scale(suffix: &str) -> Option<i128> {
    let decimal = |exponent: i32| {
        let power = u32::try_from(exponent.checked_add(9)?).ok()?;
        10_i128.checked_pow(power)
    };
    let binary = |power: u32| 1024_i128.checked_pow(power)?.checked_mul(NANOS_PER_UNIT);
    match suffix {
        "n" => decimal(-9),
        "u" => decimal(-6),
        "m" => decimal(-3),
        "" => decimal(0),
        "k" => decimal(3),
        "M" => decimal(6),
        "G" => decimal(9),
        "T" => decimal(12),
        "P" => decimal(15),
        "E" => decimal(18),
        "Ki" => binary(1),
        "Mi" => binary(2),
        "Gi" => binary(3),
        "Ti" => binary(4),
        "Pi" => binary(5),
        "Ei" => binary(6),
        exponent => decimal(exponent.strip_prefix(['e', 'E'])?.parse().ok()?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_compare_and_divide() {
        let quantity = |text: &str| text.parse::<Quantity>().expect(text);
        for (amount, divisor, parts) in [
            ("250m", "1", 1),
            ("250m", "1m", 250),
            ("1", "0", 1),
            ("64Mi", "1Mi", 64),
            ("64Mi", "1", 67_108_864),
            ("1500m", "1", 2),
            ("1e3", "1", 1000),
            ("0.5", "1m", 500),
            ("1Gi", "1G", 2),
            ("-1", "1", -1),
        ] {
            assert_eq!(
                quantity(amount).div_ceil(quantity(divisor)),
                parts,
                "{amount} / {divisor}"
            );
        }
        assert!(
            quantity("1Gi") > quantity("1G")
                && quantity("999m") < quantity("1")
                && quantity("-1").is_negative()
        );
        for raw in ["", "x", "1Q", "1.2.3", "--1", "1e99", "1e2147483647", "Ki"] {
            assert!(raw.parse::<Quantity>().is_err(), "{raw:?}");
        }
    }
}
