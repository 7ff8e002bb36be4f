//! Parser of a package's page on an index: JSON (PEP 691) or HTML (PEP 503).

use html5gum::{Token, Tokenizer};
use reqwest::Url;
use serde::Deserialize;

/// Accepted media types, best first.
pub(crate) const ACCEPT: &str =
    "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1";

/// A downloaded page.
#[derive(Debug)]
pub(crate) struct Page {
    /// Its own address, after redirections.
    pub(crate) url: Url,
    /// The media type, empty if the server gave none.
    pub(crate) content_type: String,
    /// The text.
    pub(crate) body: String,
}

#[derive(Deserialize)]
struct Listing {
    files: Vec<ListedFile>,
}

#[derive(Deserialize)]
struct ListedFile {
    filename: String,
    url: String,
}

impl Page {
    /// The address of the file with this name, or `None` if the page lists no such file; an error if the page does not
    /// match its media type. Digests on the page are ignored: the pinned one decides.
    pub(crate) fn find(&self, file_name: &str) -> Result<Option<Url>, String> {
        let address = if self.content_type.contains("json") {
            self.find_in_json(file_name)?
        } else {
            self.find_in_html(file_name)
        };
        Ok(address.map(|mut address| {
            address.set_fragment(None);
            copy_credentials(&self.url, &mut address);
            address
        }))
    }

    fn find_in_json(&self, file_name: &str) -> Result<Option<Url>, String> {
        let listing: Listing = serde_json::from_str(&self.body).map_err(|error| error.to_string())?;
        let file = listing.files.iter().find(|file| file.filename == file_name);
        file.map(|file| self.url.join(&file.url).map_err(|error| format!("{}: {error}", file.url)))
            .transpose()
    }

    fn find_in_html(&self, file_name: &str) -> Option<Url> {
        let mut base = self.url.clone();
        for token in Tokenizer::new(&self.body) {
            let Ok(Token::StartTag(tag)) = token else { continue };
            let Some(target) = tag.attributes.get(&b"href"[..]) else { continue };
            let Ok(address) = base.join(&String::from_utf8_lossy(target)) else { continue };
            match tag.name.as_slice() {
                b"base" => base = address,
                b"a" if names(&address, file_name) => return Some(address),
                _ => {}
            }
        }
        None
    }
}

/// Copies the index's user name and password to a file address on the same host.
pub(crate) fn copy_credentials(index: &Url, address: &mut Url) {
    let same_host = address.origin() == index.origin();
    if same_host && address.username().is_empty() && !index.username().is_empty() {
        let _ = address.set_username(index.username());
        let _ = address.set_password(index.password());
    }
}

/// True if the last component of the address's path is this name. The characters of wheel names that may be
/// percent-encoded in an address are the plus sign and the exclamation mark; `+` stands for itself in paths.
pub(crate) fn names(address: &Url, file_name: &str) -> bool {
    let last = address.path_segments().and_then(Iterator::last).unwrap_or_default();
    last.replace("%2B", "+").replace("%2b", "+").replace("%21", "!") == file_name
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHEEL: &str = "iree_base_compiler-9.9.9+x-py3-none-any.whl";

    fn page(content_type: &str, body: &str) -> Page {
        Page {
            url: Url::parse("https://me:secret@index.test/simple/iree-base-compiler/").expect("an address"),
            content_type: content_type.to_owned(),
            body: body.to_owned(),
        }
    }

    fn found(content_type: &str, body: &str) -> Option<String> {
        page(content_type, body).find(WHEEL).expect("a page").map(String::from)
    }

    #[test]
    fn a_json_page_gives_the_address_relative_to_itself() {
        let body = format!(
            r#"{{"meta":{{"api-version":"1.1"}},"name":"x","files":[
                {{"filename":"other.whl","url":"/other.whl","hashes":{{}}}},
                {{"filename":"{WHEEL}","url":"../../files/{WHEEL}#sha256=0","hashes":{{}}}}]}}"#
        );
        let json = "application/vnd.pypi.simple.v1+json";
        assert_eq!(
            found(json, &body).as_deref(),
            Some("https://me:secret@index.test/files/iree_base_compiler-9.9.9+x-py3-none-any.whl")
        );
        assert_eq!(found(json, r#"{"files":[]}"#), None);
    }

    #[test]
    fn a_broken_json_page_is_an_error() {
        insta::assert_snapshot!(page("application/json", "{\"files\": [").find(WHEEL).expect_err("broken"), @"EOF while parsing a list at line 1 column 11");
    }

    #[test]
    fn an_html_page_gives_the_link_whatever_its_spelling() {
        let elsewhere = "https://files.test/a/iree_base_compiler-9.9.9%2Bx-py3-none-any.whl";
        let tag = |href: &str| {
            found("text/html", &format!("<!DOCTYPE html><title>x</title><A class=c HREF={href}>text</A>"))
        };
        assert_eq!(tag(&format!("'{elsewhere}#sha256=0'")).as_deref(), Some(elsewhere));
        assert_eq!(tag(&format!("{elsewhere}?a=1&amp;b=2")), Some(format!("{elsewhere}?a=1&b=2")));
        assert_eq!(
            tag(&format!("\"../../{WHEEL}\"")),
            Some(format!("https://me:secret@index.test/{WHEEL}")),
            "relative to the page, and with its credentials, since it is the same host"
        );
        assert_eq!(tag("\"other.whl\""), None);
        assert_eq!(found("", &format!("<!-- <a href=\"{WHEEL}\">x</a> -->")), None, "commented out");
    }

    #[test]
    fn a_base_tag_moves_relative_links() {
        let body = format!("<base href='https://files.test/b/'><a href='{WHEEL}'>x</a>");
        assert_eq!(found("text/html; charset=utf-8", &body), Some(format!("https://files.test/b/{WHEEL}")));
    }
}
