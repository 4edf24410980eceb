//! The name or the folder of a model to the parts of an encoder.
//!
//! A name leads to the embedded vocabulary. A folder is read, and nothing about it is guessed: which template it has
//! must follow from a name (its own, or `_name_or_path` in its `config.json`) that its chat template does not
//! contradict, or be said by the caller.

use std::path::Path;
use std::sync::Arc;

use crate::chat::templates::Template;
use crate::error::{Error, ErrorKind, Result};
use crate::tokenizer::special_tokens::SpecialTokens;
use crate::tokenizer::vocab::Vocab;
use crate::tokenizer::{Tokenizer, tiktoken};

/// The tokenizer and the template of `model`: a name that [`Template::from_name`] knows, or a folder.
pub(super) fn load(model: &str, template: Option<Template>) -> Result<(Tokenizer, Template)> {
    let folder = Path::new(model);
    // A folder that happens to be called like a model, such as one of prepared records, does not stand in its way.
    if folder.is_dir() && Template::from_name(model).is_err() {
        let template = match template {
            Some(template) => template,
            None => template_of(folder)?,
        };
        return Ok((read_tokenizer(folder)?, template));
    }
    let template = match template {
        Some(template) => template,
        None => Template::from_name(model).map_err(|error| {
            let is_path = model.starts_with(['.', '/', '~']) || model.ends_with('/');
            if is_path {
                unknown(format!(
                    "expected a model folder, found nothing at `{model}`"
                ))
            } else {
                error
            }
        })?,
    };
    Ok((
        Tokenizer::new(
            Vocab::embedded(),
            SpecialTokens::of_models(template.special_tokens())?,
        ),
        template,
    ))
}

fn read_tokenizer(folder: &Path) -> Result<Tokenizer> {
    let ranks = folder.join("tiktoken.model");
    if ranks.is_file() {
        let vocab = Arc::new(tiktoken::read_vocab(&ranks)?);
        let special_tokens = tiktoken::read_special_tokens(&folder.join("tokenizer_config.json"))?;
        return Ok(Tokenizer::new(vocab, special_tokens));
    }
    #[cfg(feature = "huggingface")]
    {
        let tokenizer = folder.join("tokenizer.json");
        if tokenizer.is_file() {
            return crate::tokenizer::huggingface::read_tokenizer(&tokenizer);
        }
    }
    let message = "expected a tiktoken.model or a tokenizer.json, found neither";
    Err(Error::new(ErrorKind::Vocab, message).in_file(folder.display().to_string()))
}

/// The template that a folder's names agree on.
fn template_of(folder: &Path) -> Result<Template> {
    let in_folder = |error: Error| error.in_file(folder.display().to_string());
    let absolute = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let mut names: Vec<String> = absolute
        .components()
        .map(|part| part.as_os_str().to_string_lossy().into_owned())
        .collect();
    if let Some(config) = read_json(&folder.join("config.json"))? {
        names.extend(
            config
                .get("_name_or_path")
                .and_then(|name| name.as_str())
                .map(str::to_owned),
        );
    }
    // A hub cache calls its folders `models--moonshotai--Kimi-K2.5`.
    let last_word = |name: &String| {
        name.replace("--", "/")
            .rsplit('/')
            .next()
            .map(str::to_owned)
    };
    let mut found: Vec<Template> = names
        .iter()
        .filter_map(last_word)
        .filter_map(|name| Template::from_name(&name).ok())
        .collect();
    found.dedup();
    let &[template] = found.as_slice() else {
        let message = format!(
            "cannot tell which template this model folder has: pass template=, one of {}",
            Template::known_names()
        );
        return Err(in_folder(unknown(message)));
    };
    if let Some(text) = chat_template(folder)? {
        template.check_file(&text).map_err(in_folder)?;
    }
    Ok(template)
}

fn chat_template(folder: &Path) -> Result<Option<String>> {
    let file = folder.join("chat_template.jinja");
    if file.is_file() {
        return Ok(Some(
            String::from_utf8_lossy(&tiktoken::read(&file)?).into_owned(),
        ));
    }
    let config = read_json(&folder.join("tokenizer_config.json"))?;
    Ok(config.and_then(|config| Some(config.get("chat_template")?.as_str()?.to_owned())))
}

fn read_json(path: &Path) -> Result<Option<serde_json::Value>> {
    if !path.is_file() {
        return Ok(None);
    }
    serde_json::from_slice(&tiktoken::read(path)?)
        .map(Some)
        .map_err(|error| {
            let message = format!("not valid JSON: {error}");
            Error::new(ErrorKind::Json, message).in_file(path.display().to_string())
        })
}

fn unknown(message: String) -> Error {
    Error::new(ErrorKind::UnknownModel, message)
}
