//! Python's format strings.
/// x
pub enum FormatArg<'a> {
    /// i
    Int(i64),
    /// f
    Float(f64),
    /// t
    Text(&'a str),
}
/// t
pub struct Template(String);
/// p
pub fn parse(t: &str) -> Result<Template, String> {
    Ok(Template(t.into()))
}
/// h
pub fn has_placeholder(t: &str) -> bool {
    t.contains('{')
}
impl Template {
    /// r
    pub fn render(&self, a: &[FormatArg]) -> Result<String, String> {
        let mut s = self.0.clone();
        for x in a {
            let t = match x {
                FormatArg::Int(n) => n.to_string(),
                FormatArg::Float(x) => format!("{:.6}", x),
                FormatArg::Text(t) => t.to_string(),
            };
            let i = s.find('{').unwrap();
            let j = s.find('}').unwrap();
            s.replace_range(i..=j, &t);
        }
        Ok(s)
    }
}
