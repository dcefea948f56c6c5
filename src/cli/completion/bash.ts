import type { Node } from "./tree.ts";

/** The script for bash; to be sourced. */
export function bashScript(nodes: readonly Node[]): string {
  const trails = nodes.filter(({ trail }) => trail !== "").map(({ trail }) => `"${trail}"`);
  return `# bash completion of hotpush, made by: hotpush completion bash
_hotpush() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD - 1]}" trail="" word
  COMPREPLY=()
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD - 1}"; do
    case "$trail $word" in
      ${trails.join(" | ")}) trail="$trail $word" ;;
    esac
  done
  case "$trail $previous" in
${nodes.flatMap(valueCases).join("\n")}
  esac
  case "$trail" in
${nodes.map(wordsCase).join("\n")}
  esac
}
complete -F _hotpush hotpush
`;
}

function valueCases({ trail, options }: Node): readonly string[] {
  return options.flatMap(({ short, long, value }) => {
    if (value.kind === "none") return [];
    const names = [short, long].filter((name) => name !== null).map((name) => `"${trail} ${name}"`);
    const reply =
      value.kind === "path"
        ? 'compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$current")'
        : `mapfile -t COMPREPLY < <(compgen -W "${value.choices.join(" ")}" -- "$current")`;
    return [`    ${names.join(" | ")}) ${reply}; return ;;`];
  });
}

function wordsCase({ trail, commands, options, choices }: Node): string {
  const names = options.flatMap(({ short, long }) => (short === null ? [long] : [short, long]));
  const words = [...commands.map(({ word }) => word), ...choices, ...names];
  return `    "${trail}") mapfile -t COMPREPLY < <(compgen -W "${words.join(" ")}" -- "$current") ;;`;
}
