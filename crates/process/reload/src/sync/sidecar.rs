//! What kiwigrid's k8s-sidecar does with an object and we do not do otherwise.

use std::path::{Component, Path, PathBuf};

use hotmap_volume::PayloadPath;

use crate::sync::merge::shown;
use crate::sync::object::Document;

/// The end of keys whose value k8s-sidecar takes for the address of the content.
const URL_SUFFIX: &str = ".url";

/// Where an object's files go, as k8s-sidecar has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SidecarRules {
    /// The annotation that may name another folder (`FOLDER_ANNOTATION`).
    pub(crate) annotation: Option<String>,
    /// The folder itself (`FOLDER`): an absolute value has to lie in it.
    pub(crate) folder: PathBuf,
    /// Whether file names say which object they are of (`UNIQUE_FILENAMES`).
    pub(crate) unique_names: bool,
    /// Whether the value of a key that ends in `.url` is the address of the content.
    pub(crate) fetches_urls: bool,
}

/// What becomes of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KeyFile {
    /// A file of this name with its value.
    OfValue(String),
    /// A file of this name with what is at its value, a URL.
    OfUrl(String),
}

impl SidecarRules {
    /// The directory beneath the folder in which the object's files go; or why the object is left out.
    pub(crate) fn subdirectory(&self, document: &Document) -> Result<Option<String>, String> {
        let annotation = self.annotation.as_ref();
        let Some(value) = annotation.and_then(|annotation| document.annotations.get(annotation)) else {
            return Ok(None);
        };
        let beneath = Path::new(value);
        let beneath = if beneath.is_absolute() {
            beneath
                .strip_prefix(&self.folder)
                .map_err(|_| self.outside(document, value))?
        } else {
            beneath
        };
        let is_folder_itself = beneath
            .components()
            .all(|component| component == Component::CurDir);
        if is_folder_itself {
            return Ok(None);
        }
        let path = beneath
            .to_str()
            .and_then(|beneath| beneath.parse::<PayloadPath>().ok());
        path.map(|path| Some(path.as_str().to_owned()))
            .ok_or_else(|| self.outside(document, value))
    }

    /// The file of a key; or why there is none.
    pub(crate) fn file(&self, document: &Document, key: &str) -> Result<KeyFile, String> {
        let version = &document.version;
        let of_url = key.strip_suffix(URL_SUFFIX).filter(|_| self.fetches_urls);
        if of_url == Some("") {
            let whose = shown(version);
            return Err(format!(
                "key {key:?} of {whose} is left out: there is no name before {URL_SUFFIX}"
            ));
        }
        let name = of_url.unwrap_or(key);
        let name = if self.unique_names {
            let (namespace, kind, object) = (&version.namespace, version.kind, &version.name);
            format!("namespace_{namespace}.{kind}_{object}.{name}")
        } else {
            name.to_owned()
        };
        Ok(match of_url {
            Some(_) => KeyFile::OfUrl(name),
            None => KeyFile::OfValue(name),
        })
    }

    fn outside(&self, document: &Document, value: &str) -> String {
        format!(
            "{} is left out: its annotation {} leads to {value:?}, which is not beneath {}",
            shown(&document.version),
            self.annotation.as_deref().unwrap_or_default(),
            self.folder.display()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::object::ObjectKind;

    fn document(annotation: Option<&str>) -> Document {
        let json = serde_json::json!({"metadata": {
            "namespace": "shop", "name": "app",
            "annotations": annotation.map(|value| serde_json::json!({"folder": value})),
        }});
        Document::parse(ObjectKind::ConfigMap, json.to_string().as_bytes()).expect("an object")
    }

    fn rules(unique_names: bool) -> SidecarRules {
        SidecarRules {
            annotation: Some("folder".to_owned()),
            folder: "/tmp/dashboards".into(),
            unique_names,
            fetches_urls: true,
        }
    }

    #[test]
    fn an_annotation_moves_files_within_the_folder_only() {
        for (annotation, expected) in [
            (None, Ok(None)),
            (Some("team"), Ok(Some("team"))),
            (Some("./team/a/"), Ok(Some("team/a"))),
            (Some("/tmp/dashboards/team"), Ok(Some("team"))),
            (Some("/tmp/dashboards/"), Ok(None)),
            (Some("."), Ok(None)),
            (Some("/etc"), Err(())),
            (Some("/tmp/dashboards/../x"), Err(())),
            (Some("../x"), Err(())),
            (Some("a/../../x"), Err(())),
            (Some("/tmp/dashboardsx"), Err(())),
            (Some("..data"), Err(())),
        ] {
            let found = rules(false).subdirectory(&document(annotation)).map_err(drop);
            assert_eq!(
                found,
                expected.map(|path| path.map(str::to_owned)),
                "{annotation:?}"
            );
        }
        let error = rules(false)
            .subdirectory(&document(Some("/etc")))
            .expect_err("outside");
        assert_eq!(
            error,
            "shop/configmap/app is left out: its annotation folder leads to \"/etc\", which is not beneath /tmp/dashboards"
        );
    }

    #[test]
    fn names_may_say_whose_they_are_and_whether_their_content_is_elsewhere() {
        let document = document(None);
        let value = |name: &str| Ok(KeyFile::OfValue(name.to_owned()));
        let url = |name: &str| Ok(KeyFile::OfUrl(name.to_owned()));
        let unique = "namespace_shop.configmap_app.a.json";
        assert_eq!(rules(false).file(&document, "a.json"), value("a.json"));
        assert_eq!(rules(true).file(&document, "a.json"), value(unique));
        assert_eq!(rules(false).file(&document, "a.json.url"), url("a.json"));
        assert_eq!(rules(true).file(&document, "a.json.url"), url(unique));
        assert!(rules(false).file(&document, ".url").is_err());
        let mut own = rules(false);
        own.fetches_urls = false;
        assert_eq!(own.file(&document, "a.json.url"), value("a.json.url"));
    }
}
