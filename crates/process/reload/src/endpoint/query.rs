//! What is asked for beside the path. Strict: a parameter that is not known is refused by name, so that a slip is heard of.

use std::time::Duration;

/// The longest wait: long enough to be rare, short enough that both ends know the other one lives.
const WAIT_MAX: Duration = Duration::from_secs(600);

/// The parameters of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Query {
    pub(crate) volume: Option<String>,
    pub(crate) wait: Option<Duration>,
    pub(crate) values: bool,
}

impl Query {
    /// Reads what comes after the `?`; of the parameters only those in `known` may come.
    ///
    /// # Errors
    /// A sentence for the client.
    pub(crate) fn parse(query: &str, known: &[&str]) -> Result<Self, String> {
        let mut parsed = Self {
            volume: None,
            wait: None,
            values: true,
        };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = decode(&value.replace('+', " "))
                .ok_or_else(|| format!("the value of {name} is not percent-encoded UTF-8"))?;
            match name {
                _ if !known.contains(&name) => {
                    return Err(format!(
                        "there is no parameter {name:?} here; there is {}",
                        listed(known)
                    ));
                }
                "volume" => parsed.volume = Some(value),
                "wait" => parsed.wait = Some(wait(&value)?),
                _ => {
                    parsed.values = match value.as_str() {
                        "true" => true,
                        "false" => false,
                        _ => return Err("values is true or false".to_owned()),
                    }
                }
            }
        }
        Ok(parsed)
    }
}

/// Decodes `%2F` and its like; nothing if that is no UTF-8.
pub(crate) fn decode(encoded: &str) -> Option<String> {
    let mut decoded = Vec::with_capacity(encoded.len());
    let mut bytes = encoded.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let mut digit = || char::from(bytes.next()?).to_digit(16);
        let (high, low) = (digit()?, digit()?);
        decoded.push(u8::try_from(high * 16 + low).expect("two hex digits are a byte"));
    }
    String::from_utf8(decoded).ok()
}

fn wait(value: &str) -> Result<Duration, String> {
    let shape = || format!("wait is a number and a unit, such as 250ms, 30s or 10m: {value:?} is not");
    let digits = value.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = value.split_at(digits);
    let number: u64 = number.parse().map_err(|_| shape())?;
    let wait = match unit {
        "ms" => Duration::from_millis(number),
        "s" => Duration::from_secs(number),
        "m" => Duration::from_secs(number.saturating_mul(60)),
        _ => return Err(shape()),
    };
    match wait <= WAIT_MAX {
        true => Ok(wait),
        false => Err(format!("wait is at most {}m", WAIT_MAX.as_secs() / 60)),
    }
}

fn listed(known: &[&str]) -> String {
    match known {
        [] => "none".to_owned(),
        known => known.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [&str; 3] = ["volume", "wait", "values"];

    #[test]
    fn parameters_are_understood() {
        let none = Query {
            volume: None,
            wait: None,
            values: true,
        };
        let volume = |volume: &str| Query {
            volume: Some(volume.to_owned()),
            ..none.clone()
        };
        let wait = |wait| Query {
            wait: Some(wait),
            ..none.clone()
        };
        for (query, expected) in [
            ("", none.clone()),
            ("values=true", none.clone()),
            (
                "values=false&",
                Query {
                    values: false,
                    ..none.clone()
                },
            ),
            ("volume=%2Fetc%2Fapp", volume("/etc/app")),
            ("volume=/etc/a+b", volume("/etc/a b")),
            ("wait=30s", wait(Duration::from_secs(30))),
            ("wait=250ms", wait(Duration::from_millis(250))),
            ("wait=10m", wait(WAIT_MAX)),
            ("wait=0s", wait(Duration::ZERO)),
        ] {
            assert_eq!(Query::parse(query, &ALL), Ok(expected), "{query}");
        }
    }

    #[test]
    fn slips_are_named() {
        for (query, known, error) in [
            (
                "wiat=3s",
                &ALL[..],
                "no parameter \"wiat\" here; there is volume, wait, values",
            ),
            ("wait=3s", &[], "there is none"),
            ("wait=601s", &ALL, "at most 10m"),
            ("wait=99999999999999999999s", &ALL, "a number and a unit"),
            ("wait=18446744073709551615m", &ALL, "at most 10m"),
            ("wait=30", &ALL, "a number and a unit"),
            ("wait=", &ALL, "a number and a unit"),
            ("values=no", &ALL, "true or false"),
            ("volume=%2", &ALL, "percent-encoded"),
            ("volume=%ff", &ALL, "percent-encoded"),
        ] {
            let told = Query::parse(query, known).unwrap_err();
            assert!(told.contains(error), "{query}: {told}");
        }
    }
}
