/** Words by which a name tells that its value is secret, wherever they stand in it. */
const telling = /TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|API_?KEY|PRIVATE_?KEY/i;
/** Short words, which count where they stand by themselves or at the end; `PWD` alone is the working directory. */
const tellingWord = /(?:^|_)(?:PASS|PAT|AUTH|JWT)$|KEY(?:_|$)|(?<=.)_PWD$/i;
/** The value says where a secret is, or something else about it; git's keys are names of settings. */
const about = /_(?:FILE|PATH|DIR|SOCK|TTL|EXPIRY|EXPIRES|LENGTH|TYPE|ALGORITHM)$|^GIT_CONFIG_KEY_/i;

/** True where a variable of this name is likely to hold a secret. */
export function looksSecret(name: string): boolean {
  return (telling.test(name) || tellingWord.test(name)) && !about.test(name);
}

/** True where a variable of this name is likely to name the file that a secret is in: `DB_PASSWORD_FILE`. */
export function looksLikeSecretFile(name: string): boolean {
  return /_FILE$/i.test(name) && looksSecret(name.slice(0, -"_FILE".length));
}
