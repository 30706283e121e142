//! `hotmap token`: the secrets with which nodes join.
//!
//! A token is a Secret in `kube-system` in kubeadm's shape, so that both work beside each other. Its secret part is shown
//! where it is made and nowhere else.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use base64::{Engine, prelude::BASE64_STANDARD};
use clap::{Args, Subcommand, ValueEnum};
use hotmap_client::{
    AuthorityHash, Client, ClientConfig, DeleteParams, ListParams, ResourcePath, Server, Surroundings,
    WriteParams,
};
use hotmap_object::timestamp;
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::output::say;

/// Flags of `token`, as typed.
#[derive(Debug, Args)]
pub(crate) struct TokenArgs {
    #[command(subcommand)]
    command: TokenCommand,
    /// Whose tokens [default: KUBECONFIG, ~/.kube/config, the pod's account]
    #[arg(long, global = true, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum TokenCommand {
    /// Make a token with which nodes join.
    Create(CreateArgs),
    /// List tokens, without their secret part.
    List {
        /// How they are printed.
        #[arg(short, long, value_enum, default_value_t = Output::Text)]
        output: Output,
    },
    /// Delete tokens: nobody joins with them any more; who has joined stays.
    Delete {
        /// First part of a token, or all of it.
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
    },
}

#[derive(Debug, Args)]
struct CreateArgs {
    /// How long it is good, such as 24h or 30m; 0 for ever.
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = ttl)]
    ttl: SignedDuration,
    /// What it is for, in words.
    #[arg(long, value_name = "TEXT", default_value = "")]
    description: String,
    /// Print the command that a new node runs.
    #[arg(long)]
    print_join_command: bool,
    /// Where nodes reach the API, for the command [default: as in the kubeconfig]
    #[arg(long, value_name = "URL", requires = "print_join_command")]
    server: Option<String>,
    /// How it is printed.
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    /// For people.
    Text,
    /// For programs.
    Json,
}

const NAMESPACE: &str = "kube-system";
const NAME_PREFIX: &str = "bootstrap-token-";
const SECRET_TYPE: &str = "bootstrap.kubernetes.io/token";
/// The group that may ask for a node's certificate; kubeadm's.
const GROUP: &str = "system:bootstrappers:kubeadm:default-node-token";
const ALPHABET: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
const ID_LEN: usize = 6;
const SECRET_LEN: usize = 16;

pub(crate) async fn run(args: TokenArgs) -> anyhow::Result<()> {
    let config = find(args.kubeconfig).await?;
    let client = Client::new(config.clone())?;
    match args.command {
        TokenCommand::Create(args) => create(&client, &config, args).await,
        TokenCommand::List { output } => list(&client, output).await,
        TokenCommand::Delete { ids } => delete(&client, &ids).await,
    }
}

async fn find(named: Option<PathBuf>) -> anyhow::Result<ClientConfig> {
    let found =
        move || ClientConfig::find(named.as_deref().map(Path::new), None, &Surroundings::of_process());
    Ok(tokio::task::spawn_blocking(found).await??)
}

async fn create(client: &Client, config: &ClientConfig, args: CreateArgs) -> anyhow::Result<()> {
    let (id, secret) = (random(ID_LEN)?, random(SECRET_LEN)?);
    let expires = match args.ttl.is_zero() {
        true => None,
        false => Some(
            Timestamp::now()
                .checked_add(args.ttl)
                .context("--ttl is too long")?,
        ),
    };
    // Before the token is made: what cannot be printed must not leave a token behind.
    let server = match &args.server {
        Some(url) => Server::parse(url)?,
        None => config.server.clone(),
    };
    let hash = AuthorityHash::of_pem(&config.ca_pem)?;
    let mut data = json!({
        "token-id": id, "token-secret": secret, "usage-bootstrap-authentication": "true",
        "usage-bootstrap-signing": "true", "auth-extra-groups": GROUP,
    });
    if let Some(expires) = expires {
        data["expiration"] = timestamp::seconds(expires).into();
    }
    if !args.description.is_empty() {
        data["description"] = args.description.into();
    }
    let object = json!({
        "apiVersion": "v1", "kind": "Secret", "type": SECRET_TYPE,
        "metadata": {"name": format!("{NAME_PREFIX}{id}"), "namespace": NAMESPACE},
        "stringData": data,
    });
    let created = client
        .create(&collection(), &object, &WriteParams::default())
        .await;
    created.context("cannot make the token")?;
    let token = format!("{id}.{secret}");
    let command = join_command(&server, &token, hash);
    if args.print_join_command && is_loopback(&server.host) {
        eprintln!(
            "hotmap: {} is this machine alone: nodes elsewhere need --server with another address",
            server.host
        );
    }
    say(match args.output {
        Output::Json => {
            let document = json!({
                "token": token, "id": id, "expires": expires.map(timestamp::seconds),
                "authorityHash": hash.to_string(), "joinCommand": command,
            });
            serde_json::to_string_pretty(&document)?
        }
        Output::Text if args.print_join_command => command,
        Output::Text => token,
    });
    Ok(())
}

async fn list(client: &Client, output: Output) -> anyhow::Result<()> {
    let params = ListParams {
        field_selector: format!("type={SECRET_TYPE}"),
        ..ListParams::default()
    };
    let secrets = client
        .list(&collection(), &params)
        .await
        .context("cannot list tokens")?;
    let now = Timestamp::now();
    let tokens = secrets
        .items
        .iter()
        .map(|secret| Ok(Listed::of(&secret.parse::<Secret>()?)));
    let tokens = tokens.collect::<anyhow::Result<Vec<Listed>>>()?;
    say(match output {
        Output::Json => {
            let tokens: Vec<Value> = tokens.iter().map(Listed::json).collect();
            serde_json::to_string_pretty(&tokens)?
        }
        Output::Text => table(&tokens, now),
    });
    Ok(())
}

async fn delete(client: &Client, ids: &[String]) -> anyhow::Result<()> {
    for id in ids {
        let id = id.split('.').next().unwrap_or_default();
        if !is_word(id, ID_LEN) {
            bail!("{id:?} is no id of a token: six of a-z and 0-9, as `hotmap token list` shows them");
        }
        let path = collection().name(format!("{NAME_PREFIX}{id}"));
        match client.delete(&path, &DeleteParams::default()).await {
            Ok(_) => say(format!("token {id} deleted")),
            Err(error) if error.is_not_found() => bail!("there is no token {id}"),
            Err(error) => return Err(error).context(format!("cannot delete token {id}")),
        }
    }
    Ok(())
}

fn collection() -> ResourcePath {
    ResourcePath::new("", "v1", "secrets").in_namespace(NAMESPACE)
}

fn join_command(server: &Server, token: &str, hash: AuthorityHash) -> String {
    format!(
        "hotmap agent --join {} --token {token} --ca-hash {hash}",
        server.url()
    )
}

fn is_loopback(host: &str) -> bool {
    host == "localhost"
        || host
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

/// `24h`, `1h 30m`, `0`.
fn ttl(text: &str) -> Result<SignedDuration, String> {
    if text == "0" {
        return Ok(SignedDuration::ZERO);
    }
    match text.parse::<SignedDuration>() {
        Ok(ttl) if !ttl.is_negative() => Ok(ttl),
        _ => Err("must be a time such as 24h or 30m, or 0 for ever".to_owned()),
    }
}

fn random(len: usize) -> anyhow::Result<String> {
    let mut word = String::with_capacity(len);
    while word.len() < len {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).context("the system has no randomness")?;
        // Every letter equally often: what is left above the last multiple is drawn again.
        let fair = bytes
            .iter()
            .filter(|&&byte| usize::from(byte) < 256 / ALPHABET.len() * ALPHABET.len());
        let letters = fair.map(|&byte| char::from(ALPHABET[usize::from(byte) % ALPHABET.len()]));
        word.extend(letters.take(len - word.len()));
    }
    Ok(word)
}

/// Whether this is a bootstrap token by its shape.
pub(crate) fn is_token(text: &str) -> bool {
    let parts = text.split_once('.');
    parts.is_some_and(|(id, secret)| is_word(id, ID_LEN) && is_word(secret, SECRET_LEN))
}

fn is_word(text: &str, len: usize) -> bool {
    text.len() == len && text.bytes().all(|byte| ALPHABET.contains(&byte))
}

#[derive(Deserialize)]
struct Secret {
    metadata: Metadata,
    #[serde(default)]
    data: Option<Data>,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
}

/// The secret part is not even read.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct Data {
    expiration: String,
    description: String,
    auth_extra_groups: String,
    usage_bootstrap_authentication: String,
    usage_bootstrap_signing: String,
}

struct Listed {
    id: String,
    expires: String,
    usages: Vec<&'static str>,
    groups: String,
    description: String,
}

impl Listed {
    fn of(secret: &Secret) -> Self {
        let text = |value: &str| {
            let bytes = BASE64_STANDARD.decode(value).unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        let empty = Data::default();
        let data = secret.data.as_ref().unwrap_or(&empty);
        let name = &secret.metadata.name;
        let usages = [
            ("authentication", &data.usage_bootstrap_authentication),
            ("signing", &data.usage_bootstrap_signing),
        ];
        let usages = usages
            .into_iter()
            .filter(|(_, set)| text(set) == "true")
            .map(|(usage, _)| usage);
        Self {
            id: name.strip_prefix(NAME_PREFIX).unwrap_or(name).to_owned(),
            expires: text(&data.expiration),
            usages: usages.collect(),
            groups: text(&data.auth_extra_groups),
            description: text(&data.description),
        }
    }

    fn json(&self) -> Value {
        let expires = Some(&self.expires).filter(|expires| !expires.is_empty());
        let groups = self.groups.split(',').filter(|group| !group.is_empty());
        json!({
            "id": self.id, "expires": expires, "usages": self.usages, "groups": groups.collect::<Vec<_>>(),
            "description": self.description,
        })
    }

    /// Time that is left.
    fn left(&self, now: Timestamp) -> String {
        match self.expires.parse::<Timestamp>() {
            Ok(end) if end <= now => "<expired>".to_owned(),
            Ok(end) => timestamp::human_age(now, end),
            Err(_) if self.expires.is_empty() => "<forever>".to_owned(),
            Err(_) => "<invalid>".to_owned(),
        }
    }
}

fn table(tokens: &[Listed], now: Timestamp) -> String {
    let or_none = |text: &str| {
        if text.is_empty() {
            "<none>".to_owned()
        } else {
            text.to_owned()
        }
    };
    let mut rows = vec![["ID", "TTL", "EXPIRES", "USAGES", "GROUPS", "DESCRIPTION"].map(str::to_owned)];
    rows.extend(tokens.iter().map(|token| {
        [
            token.id.clone(),
            token.left(now),
            or_none(&token.expires),
            or_none(&token.usages.join(",")),
            or_none(&token.groups),
            or_none(&token.description),
        ]
    }));
    let width = |at: usize| {
        rows.iter()
            .map(|row| row[at].chars().count())
            .max()
            .unwrap_or_default()
    };
    let widths: Vec<usize> = (0..rows[0].len()).map(width).collect();
    let lines = rows.iter().map(|row| {
        let cells: Vec<String> = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        cells.join("   ").trim_end().to_owned()
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_have_kubeadms_shape() {
        for _ in 0..100 {
            let token = format!(
                "{}.{}",
                random(ID_LEN).expect("random"),
                random(SECRET_LEN).expect("random")
            );
            assert!(is_token(&token), "{token}");
        }
        for text in [
            "",
            "abcdef",
            "abcdef.0123456789ABCDEF",
            "abcdef.0123456789abcde",
            "abcde.f0123456789abcdef",
        ] {
            assert!(!is_token(text), "{text:?}");
        }
    }

    #[test]
    fn times_to_live_are_written_as_people_do() {
        for (text, hours) in [
            ("24h", Some(24)),
            ("0", Some(0)),
            ("0s", Some(0)),
            ("1d", None),
            ("soon", None),
            ("-1h", None),
        ] {
            assert_eq!(ttl(text).ok(), hours.map(SignedDuration::from_hours), "{text}");
        }
        assert_eq!(ttl("1h30m").ok(), Some(SignedDuration::from_mins(90)));
    }

    #[test]
    fn a_list_shows_everything_but_the_secret() {
        let encode = |text: &str| BASE64_STANDARD.encode(text);
        let secret = json!({"metadata": {"name": "bootstrap-token-abcdef"}, "data": {
            "token-id": encode("abcdef"), "token-secret": encode("0123456789abcdef"),
            "expiration": encode("2026-01-03T15:04:05Z"), "usage-bootstrap-authentication": encode("true"),
            "auth-extra-groups": encode(GROUP), "description": encode("rack 7")}});
        let bare = json!({"metadata": {"name": "bootstrap-token-012345"}});
        let tokens: Vec<Listed> = [secret, bare]
            .into_iter()
            .map(|secret| Listed::of(&serde_json::from_value(secret).expect("a Secret")))
            .collect();
        let now = "2026-01-02T15:04:05Z".parse().expect("a time");
        let shown = table(&tokens, now);
        let rows: Vec<Vec<&str>> = shown
            .lines()
            .map(|line| {
                line.split("   ")
                    .map(str::trim)
                    .filter(|cell| !cell.is_empty())
                    .collect()
            })
            .collect();
        assert_eq!(
            rows[1],
            [
                "abcdef",
                "24h",
                "2026-01-03T15:04:05Z",
                "authentication",
                GROUP,
                "rack 7"
            ]
        );
        assert_eq!(
            rows[2],
            ["012345", "<forever>", "<none>", "<none>", "<none>", "<none>"]
        );
        let shown = format!("{shown}{}", tokens[0].json());
        assert!(!shown.contains("0123456789abcdef"), "{shown}");
    }
}
