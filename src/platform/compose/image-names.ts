/**
 * Recognizes images by the end of their names, without the tag: `gitea` is `gitea`, `gitea/gitea:1.24` and
 * `registry.example.org/mirror/gitea@sha256:…`, but not `gitea/act_runner`.
 *
 * @param names regular expressions, separated by white space; with the owner if the name alone would be ambiguous
 */
export function imagePattern(names: string): RegExp {
  return new RegExp(`(?:^|/)(?:${names.trim().split(/\s+/).join("|")})(?::|@|$)`);
}
