import type { Node, OptionNode } from "./tree.ts";

/** The script for zsh: to be put into a directory of `fpath` as `_hotpush`, or to be sourced after compinit. */
export function zshScript(nodes: readonly Node[]): string {
  const trails = nodes.filter(({ trail }) => trail !== "").map(({ trail }) => quoted(trail));
  return `#compdef hotpush
# zsh completion of hotpush, made by: hotpush completion zsh
_hotpush() {
  local trail="" word
  local -a candidates
  for word in "\${(@)words[2,CURRENT-1]}"; do
    case "$trail $word" in
      (${trails.join("|")}) trail="$trail $word" ;;
    esac
  done
  case "$trail \${words[CURRENT-1]}" in
${nodes.flatMap(valueCases).join("\n")}
  esac
  case "$trail" in
${nodes.map(wordsCase).join("\n")}
  esac
  _describe hotpush candidates
}
if [ "$funcstack[1]" = "_hotpush" ]; then _hotpush "$@"; else compdef _hotpush hotpush; fi
`;
}

function valueCases({ trail, options }: Node): readonly string[] {
  return options.flatMap(({ short, long, value }) => {
    if (value.kind === "none") return [];
    const names = [short, long].filter((name) => name !== null).map((name) => quoted(`${trail} ${name}`));
    const reply = value.kind === "path" ? "_files" : `compadd -- ${value.choices.join(" ")}`;
    return [`    (${names.join("|")}) ${reply}; return ;;`];
  });
}

function wordsCase({ trail, commands, options, choices }: Node): string {
  const words = [
    ...commands.map(({ word, text }) => `${word}:${text}`),
    ...choices,
    ...options.flatMap(optionWords),
  ];
  return `    (${quoted(trail)}) candidates=(${words.map(quoted).join(" ")}) ;;`;
}

function optionWords({ short, long, text }: OptionNode): readonly string[] {
  return short === null ? [`${long}:${text}`] : [`${short}:${text}`, `${long}:${text}`];
}

function quoted(text: string): string {
  return `'${text}'`;
}
