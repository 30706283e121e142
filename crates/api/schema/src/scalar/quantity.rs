//! `resource.Quantity`: a decimal number with a suffix, kept in the one form that Kubernetes prints.
//!
//! Follows `ParseQuantity` and `CanonicalizeBytes` of apimachinery `pkg/api/resource/quantity.go`, release 1.36. Numbers
//! beyond 34 digits (or 10³⁸ after their suffix) are refused, where upstream goes on with big integers: no resource is
//! counted so finely.

use std::borrow::Cow;

/// Text that is no quantity; the words are upstream's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum QuantityError {
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    Format,
    #[error("unable to parse quantity's suffix")]
    Suffix,
    #[error("unable to parse numeric part of quantity")]
    Numeric,
}

/// So many digits fit an `i128` together with every suffix.
const DIGITS_MAX: usize = 34;
/// So many digits fit an `i64`, upstream's fast representation.
const FAST_DIGITS: i64 = 18;
/// Finer than 10⁻⁹ is rounded up.
const NANO: i64 = 9;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    DecimalSi,
    DecimalExponent,
    BinarySi,
}

/// A number cut into its parts.
struct Parts<'a> {
    negative: bool,
    number: &'a str,
    fraction: &'a str,
    suffix: &'a str,
}

/// The form Kubernetes prints: `0.5` → `500m`, `1000m` → `1`, `1024Ki` → `1Mi`, and `1Gi` stays.
pub(crate) fn canonical(text: &str) -> Result<Cow<'_, str>, QuantityError> {
    if text == "0" {
        return Ok(Cow::Borrowed(text));
    }
    let parts = split(text)?;
    let (format, exponent) = interpret(parts.suffix).ok_or(QuantityError::Suffix)?;
    let digits = parts.number.len() + parts.fraction.len();
    if digits > DIGITS_MAX {
        return Err(QuantityError::Numeric);
    }
    let unscaled: i128 = format!("{}{}", parts.number, parts.fraction)
        .parse()
        .map_err(|_| QuantityError::Numeric)?;
    if is_kept_verbatim(&parts, unscaled, format, exponent) {
        return Ok(Cow::Borrowed(text));
    }
    print(&parts, unscaled, format, exponent).map(Cow::Owned)
}

fn split(text: &str) -> Result<Parts<'_>, QuantityError> {
    if text.is_empty() {
        return Err(QuantityError::Format);
    }
    let (negative, unsigned) = match text.as_bytes()[0] {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let (number, rest) = take(unsigned.trim_start_matches('0'), |c| c.is_ascii_digit());
    let (fraction, suffix) = match rest.strip_prefix('.') {
        Some(rest) => take(rest, |c| c.is_ascii_digit()),
        None => ("", rest),
    };
    let (_, rest) = take(suffix, |c| "eEinumkKMGTP".contains(c));
    let rest = rest.strip_prefix(['-', '+']).unwrap_or(rest);
    if !take(rest, |c| c.is_ascii_digit()).1.is_empty() {
        return Err(QuantityError::Format);
    }
    Ok(Parts {
        negative,
        number: if number.is_empty() { "0" } else { number },
        fraction,
        suffix,
    })
}

fn take(text: &str, wanted: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !wanted(c)).unwrap_or(text.len()))
}

/// Format, and the power of ten (or of two for binary suffixes).
fn interpret(suffix: &str) -> Option<(Format, i64)> {
    let known = match suffix {
        "" => (Format::DecimalSi, 0),
        "n" => (Format::DecimalSi, -9),
        "u" => (Format::DecimalSi, -6),
        "m" => (Format::DecimalSi, -3),
        "k" => (Format::DecimalSi, 3),
        "M" => (Format::DecimalSi, 6),
        "G" => (Format::DecimalSi, 9),
        "T" => (Format::DecimalSi, 12),
        "P" => (Format::DecimalSi, 15),
        "E" => (Format::DecimalSi, 18),
        "Ki" => (Format::BinarySi, 10),
        "Mi" => (Format::BinarySi, 20),
        "Gi" => (Format::BinarySi, 30),
        "Ti" => (Format::BinarySi, 40),
        "Pi" => (Format::BinarySi, 50),
        "Ei" => (Format::BinarySi, 60),
        exponent => {
            let power: i32 = exponent.strip_prefix(['e', 'E'])?.parse().ok()?;
            (Format::DecimalExponent, i64::from(power))
        }
    };
    Some(known)
}

/// Upstream remembers the text it parsed when it looks canonical already, even if it is not quite (`+5`, `1.500`).
fn is_kept_verbatim(parts: &Parts<'_>, unscaled: i128, format: Format, exponent: i64) -> bool {
    let digits = (parts.number.len() + parts.fraction.len()) as i64;
    if format == Format::BinarySi {
        let precision = 15 - digits - exponent * 3 / 10 - 1;
        let fits = i64::try_from(unscaled << exponent.min(64)).is_ok();
        return parts.fraction.is_empty() && precision >= 0 && fits && unscaled & 7 != 0;
    }
    let scale = exponent - parts.fraction.len() as i64;
    let shifted_ends_in_thousand = unscaled % 1000 == 0 && parts.number.len() + parts.fraction.len() >= 3;
    digits <= FAST_DIGITS
        && scale >= -NANO
        && scale % 3 == 0
        && !shifted_ends_in_thousand
        && !parts.number.starts_with('0')
}

fn print(parts: &Parts<'_>, unscaled: i128, format: Format, exponent: i64) -> Result<String, QuantityError> {
    if unscaled == 0 {
        return Ok("0".to_owned());
    }
    let sign = if parts.negative { "-" } else { "" };
    let fraction_power = -(parts.fraction.len() as i64);
    if format == Format::BinarySi {
        let (mantissa, power) = binary_amount(parts, unscaled, exponent)?;
        return match whole(mantissa, power).filter(|integer| *integer >= 1024) {
            Some(integer) => Ok(format!("{sign}{}", print_binary(integer))),
            None => print_decimal(sign, mantissa, power, Format::DecimalSi),
        };
    }
    let (mantissa, power) = round_up_to_nano(unscaled, fraction_power + exponent);
    print_decimal(sign, mantissa, power, format)
}

/// Mantissa and power of ten of a number with a binary suffix, at most 2⁶³-1.
fn binary_amount(parts: &Parts<'_>, unscaled: i128, exponent: i64) -> Result<(i128, i64), QuantityError> {
    const CAP: i128 = i64::MAX as i128;
    let factor = 1_i128 << exponent;
    let number: i128 = parts.number.parse().map_err(|_| QuantityError::Numeric)?;
    if number.checked_mul(factor).is_none_or(|whole| whole > CAP) {
        return Ok((CAP, 0));
    }
    let mantissa = unscaled.checked_mul(factor).ok_or(QuantityError::Numeric)?;
    let (mantissa, power) = round_up_to_nano(mantissa, -(parts.fraction.len() as i64));
    let over = 10_i128
        .pow(-power as u32)
        .checked_mul(CAP)
        .is_some_and(|cap| mantissa > cap);
    Ok(if over { (CAP, 0) } else { (mantissa, power) })
}

fn round_up_to_nano(mantissa: i128, power: i64) -> (i128, i64) {
    let excess = -NANO - power;
    if excess <= 0 {
        return (mantissa, power);
    }
    let divisor = u32::try_from(excess)
        .ok()
        .and_then(|excess| 10_i128.checked_pow(excess));
    // Beyond every divisor a non-zero amount is still the least that can be said.
    let rounded = divisor.map_or(1, |divisor| {
        mantissa / divisor + i128::from(mantissa % divisor != 0)
    });
    (rounded, -NANO)
}

/// The integer that this number is, if it is one.
fn whole(mantissa: i128, power: i64) -> Option<i128> {
    let divisor = 10_i128.checked_pow(u32::try_from(-power).ok()?)?;
    (mantissa % divisor == 0).then(|| mantissa / divisor)
}

fn print_binary(mut integer: i128) -> String {
    let mut times = 0;
    while integer % 1024 == 0 && times < 6 {
        integer /= 1024;
        times += 1;
    }
    format!("{integer}{}", ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"][times])
}

fn print_decimal(
    sign: &str,
    mut mantissa: i128,
    mut power: i64,
    format: Format,
) -> Result<String, QuantityError> {
    while mantissa % 10 == 0 {
        mantissa /= 10;
        power += 1;
    }
    let spare = power.rem_euclid(3);
    mantissa = mantissa
        .checked_mul(10_i128.pow(spare as u32))
        .ok_or(QuantityError::Numeric)?;
    power -= spare;
    let si = match power {
        0 => "",
        -9 => "n",
        -6 => "u",
        -3 => "m",
        3 => "k",
        6 => "M",
        9 => "G",
        12 => "T",
        15 => "P",
        18 => "E",
        // No suffix is that large: the exponent keeps the value, where upstream would print a wrong one.
        _ => return Ok(format!("{sign}{mantissa}e{power}")),
    };
    let exponent = if power == 0 {
        String::new()
    } else {
        format!("e{power}")
    };
    Ok(format!(
        "{sign}{mantissa}{}",
        if format == Format::DecimalSi {
            si
        } else {
            &exponent
        }
    ))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn quantities_take_the_form_that_upstream_prints() {
        for (text, expected) in [
            ("0", "0"),
            ("0.0", "0"),
            ("-0", "0"),
            ("1", "1"),
            ("1000m", "1"),
            ("1500m", "1500m"),
            ("0.5", "500m"),
            ("1.5", "1500m"),
            ("100m", "100m"),
            ("1000", "1k"),
            ("1024", "1024"),
            ("1Gi", "1Gi"),
            ("1024Ki", "1Mi"),
            ("1024Mi", "1Gi"),
            ("0.5Gi", "512Mi"),
            ("1.5Gi", "1536Mi"),
            ("0.5Ki", "512"),
            ("0.1Ki", "102400m"),
            ("64Mi", "64Mi"),
            ("1e3", "1e3"),
            ("1000e3", "1e6"),
            ("12E", "12E"),
            ("1.2e1", "1.2e1"),
            ("12.5e2", "1250"),
            ("-1", "-1"),
            ("0.1n", "1n"),
            ("0.0000000001", "1n"),
            ("10Ei", "9223372036854775807"),
            ("5000000000", "5G"),
            ("16384Ki", "16Mi"),
            (".5", "500m"),
            ("+5", "+5"),
        ] {
            assert_eq!(canonical(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_quantity_is_refused_in_upstream_words() {
        for (text, expected) in [
            ("", QuantityError::Format),
            ("abc", QuantityError::Format),
            ("1 ", QuantityError::Format),
            ("1..2", QuantityError::Format),
            ("1ki", QuantityError::Suffix),
            ("1e", QuantityError::Suffix),
            ("1KiKi", QuantityError::Suffix),
        ] {
            assert_eq!(canonical(text), Err(expected), "{text}");
        }
    }

    proptest! {
        #[test]
        fn canonical_is_a_fixed_point(text in "[+-]?[0-9]{0,12}(\\.[0-9]{0,12})?(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|e[0-9]|e-[0-9])?") {
            if let Ok(once) = canonical(&text) {
                let twice = canonical(&once);
                prop_assert_eq!(twice.as_deref(), Ok(&*once), "{}", text);
            }
        }

        #[test]
        fn no_text_panics(text in ".{0,40}") {
            let _ = canonical(&text);
        }
    }
}
