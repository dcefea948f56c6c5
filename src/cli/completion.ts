import { Argument, type Command } from "commander";
import { type CommandContext, newCommand } from "./command.ts";
import { type CommandNode, describeProgram, type OptionNode } from "./command-tree.ts";

const scripts: Readonly<Record<string, (nodes: readonly CommandNode[]) => string>> = {
  bash: bashScript,
  zsh: zshScript,
  fish: fishScript,
};

/** `hotpush completion`: prints a completion script that is made from the commands themselves. */
export function makeCompletionCommand({ finish }: CommandContext): Command {
  const description = "Print the script with which a shell completes the commands and options of hotpush.";
  return newCommand("completion", description, [
    "hotpush completion bash > /etc/bash_completion.d/hotpush",
    "hotpush completion zsh > ~/.zfunc/_hotpush   a directory of your fpath",
    "hotpush completion fish > ~/.config/fish/completions/hotpush.fish",
  ])
    .addArgument(new Argument("<shell>").choices(Object.keys(scripts)))
    .action((shell: string, _options: object, { parent }: Command) => {
      process.stdout.write(parent ? (scripts[shell]?.(describeProgram(parent)) ?? "") : "");
      finish(0);
    });
}

/** To be sourced. */
function bashScript(nodes: readonly CommandNode[]): string {
  const shell: CaseShell = {
    wordsBefore: `"\${COMP_WORDS[@]:1:COMP_CWORD - 1}"`,
    previous: "COMP_WORDS[COMP_CWORD - 1]",
    files: 'compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$current")',
    choices: bashWords,
    words: (node) => bashWords(wordsOf(node).map(({ word }) => word)),
  };
  return `# bash completion of hotpush, made by: hotpush completion bash
_hotpush() {
  local current="\${COMP_WORDS[COMP_CWORD]}" trail="" word
  COMPREPLY=()
${caseScript(nodes, shell)}
}
complete -F _hotpush hotpush
`;
}

function bashWords(words: readonly string[]): string {
  return `mapfile -t COMPREPLY < <(compgen -W "${words.join(" ")}" -- "$current")`;
}

/** To be put into a directory of `fpath` as `_hotpush`, or to be sourced after compinit. */
function zshScript(nodes: readonly CommandNode[]): string {
  const shell: CaseShell = {
    wordsBefore: `"\${(@)words[2,CURRENT-1]}"`,
    previous: "words[CURRENT-1]",
    files: "_files",
    choices: (words) => `compadd -- ${words.join(" ")}`,
    words: (node) => `candidates=(${wordsOf(node).map(zshCandidate).join(" ")})`,
  };
  return `#compdef hotpush
# zsh completion of hotpush, made by: hotpush completion zsh
_hotpush() {
  local trail="" word
  local -a candidates
${caseScript(nodes, shell)}
  _describe hotpush candidates
}
if [ "$funcstack[1]" = "_hotpush" ]; then _hotpush "$@"; else compdef _hotpush hotpush; fi
`;
}

function zshCandidate({ word, text }: { readonly word: string; readonly text: string }): string {
  return text === "" ? `'${word}'` : `'${word}:${text}'`;
}

/** What differs between bash and zsh; a `case` is the same in both. */
interface CaseShell {
  readonly wordsBefore: string;
  readonly previous: string;
  /** The command that offers files, and those that offer the values of an option and the words after a command. */
  readonly files: string;
  readonly choices: (words: readonly string[]) => string;
  readonly words: (node: CommandNode) => string;
}

/** Finds the command that the words before lead to, then offers what its last option takes, or its words. */
function caseScript(nodes: readonly CommandNode[], shell: CaseShell): string {
  const trails = nodes.flatMap(({ trail }) => (trail === "" ? [] : [`'${trail}'`]));
  return `  for word in ${shell.wordsBefore}; do
    case "$trail $word" in
      (${trails.join("|")}) trail="$trail $word" ;;
    esac
  done
  case "$trail \${${shell.previous}}" in
${nodes.flatMap((node) => valueCases(node, shell)).join("\n")}
  esac
  case "$trail" in
${nodes.map((node) => `    ('${node.trail}') ${shell.words(node)} ;;`).join("\n")}
  esac`;
}

function valueCases({ trail, options }: CommandNode, { files, choices }: CaseShell): readonly string[] {
  return options.flatMap(({ value, ...option }) => {
    if (value === "none") return [];
    const names = namesOf(option).map((name) => `'${trail} ${name}'`);
    return [`    (${names.join("|")}) ${value === "path" ? files : choices(value)}; return ;;`];
  });
}

function wordsOf({ commands, choices, options }: CommandNode) {
  return [
    ...commands,
    ...choices.map((word) => ({ word, text: "" })),
    ...options.flatMap((option) => namesOf(option).map((word) => ({ word, text: option.text }))),
  ];
}

function namesOf({ short, long }: Pick<OptionNode, "short" | "long">): readonly string[] {
  return short === null ? [long] : [short, long];
}

/** To be put into fish's directory of completions, or to be sourced. */
function fishScript(nodes: readonly CommandNode[]): string {
  const trails = nodes.flatMap(({ trail }) => (trail === "" ? [] : [`'${trail}'`]));
  return `# fish completion of hotpush, made by: hotpush completion fish
function __hotpush_trail
    set -l trail ""
    for word in (commandline -opc)[2..-1]
        if contains -- "$trail $word" ${trails.join(" ")}
            set trail "$trail $word"
        end
    end
    echo -- $trail
end
function __hotpush_at
    set -l trail (__hotpush_trail)
    test "$trail" = "$argv[1]"
end
complete -c hotpush -f
${nodes.flatMap(fishLines).join("\n")}
`;
}

function fishLines({ trail, commands, options, choices }: CommandNode): readonly string[] {
  const start = `complete -c hotpush -n '__hotpush_at "${trail}"'`;
  return [
    ...commands.map(({ word, text }) => `${start} -a ${word} -d '${text}'`),
    ...(choices.length > 0 ? [`${start} -a '${choices.join(" ")}'`] : []),
    ...options.map((option) => `${start} ${fishFlags(option)} -d '${option.text}'`),
  ];
}

function fishFlags({ short, long, value }: OptionNode): string {
  const names = [...(short === null ? [] : [`-s ${short.slice(1)}`]), `-l ${long.slice(2)}`].join(" ");
  if (value === "none") return names;
  return value === "path" ? `${names} -r -F` : `${names} -x -a '${value.join(" ")}'`;
}
