import { Argument, type Command, type Option } from "commander";
import { type CommandContext, newCommand, print } from "./command.ts";

/** Printed in place of words if the path of a file can follow. */
const anyPath = ":files";

/**
 * What a shell sources: it asks `hotpush completion <shell> -- <words>` what can follow the words before the cursor.
 */
const scripts: Readonly<Record<string, string>> = {
  bash: `# bash completion of hotpush, made by: hotpush completion bash
_hotpush() {
  local current="\${COMP_WORDS[COMP_CWORD]}" found
  found=$(hotpush completion bash -- "\${COMP_WORDS[@]:0:COMP_CWORD}" 2>/dev/null)
  if [ "$found" = ${anyPath} ]; then
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
  else
    mapfile -t COMPREPLY < <(compgen -W "$found" -- "$current")
  fi
}
complete -F _hotpush hotpush
`,
  zsh: `#compdef hotpush
# zsh completion of hotpush, made by: hotpush completion zsh
_hotpush() {
  local -a candidates
  candidates=("\${(@f)$(hotpush completion zsh -- "\${(@)words[1,CURRENT-1]}" 2>/dev/null)}")
  if [ "$candidates[1]" = ${anyPath} ]; then _files; else _describe hotpush candidates; fi
}
if [ "$funcstack[1]" = "_hotpush" ]; then _hotpush "$@"; else compdef _hotpush hotpush; fi
`,
  fish: `# fish completion of hotpush, made by: hotpush completion fish
function __hotpush_complete
    set -l found (hotpush completion fish -- (commandline -opc) 2>/dev/null)
    if test "$found" = ${anyPath}
        __fish_complete_path (commandline -ct)
    else
        printf '%s\\n' $found
    end
end
complete -c hotpush -f -a '(__hotpush_complete)'
`,
};

/** What each shell takes between a word and its text; bash shows no text. */
const separators: Readonly<Record<string, string>> = { zsh: ":", fish: "\t" };

/** `hotpush completion`: prints a completion script or, for that script, what can follow the words of a command line. */
export function makeCompletionCommand({ env, finish }: CommandContext): Command {
  const description = "Print the script with which a shell completes the commands and options of hotpush.";
  return newCommand("completion", description, [
    "hotpush completion bash > /etc/bash_completion.d/hotpush",
    "hotpush completion zsh > ~/.zfunc/_hotpush   a directory of your fpath",
    "hotpush completion fish > ~/.config/fish/completions/hotpush.fish",
    "hotpush completion bash -- hotpush logs      what can follow these words",
  ])
    .addArgument(new Argument("<shell>").choices(Object.keys(scripts)))
    .argument("[words...]", "after --: print what can follow them on a command line")
    .action(async (shell: string, words: readonly string[], _options: object, { parent }: Command) => {
      if (words.length === 0) process.stdout.write(scripts[shell] ?? "");
      else if (parent) {
        const found = await candidates(parent, words, env);
        print(...found.map((one) => lineOf(one, separators[shell])));
      }
      finish(0);
    });
}

interface Candidate {
  readonly word: string;
  readonly text: string;
}

/** The subcommands, values and options that can follow `words`; if the last of them takes a value, only that. */
async function candidates(
  program: Command,
  words: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<readonly Candidate[]> {
  let command = program;
  for (const word of words) command = command.commands.find((one) => one.name() === word) ?? command;
  const options = command.createHelp().visibleOptions(command);
  const last = options.find(({ short, long }) => words.length > 0 && [short, long].includes(words.at(-1)));
  if (last && (last.required || last.optional)) {
    const known = last.long === "--project" ? await projectNames(env) : valuesOf(last);
    return known.map((word) => ({ word, text: "" }));
  }
  const values = command.registeredArguments.flatMap(({ argChoices = [] }) => argChoices);
  return [
    ...command.commands.map((one) => ({ word: one.name(), text: one.summary() })),
    ...values.map((word) => ({ word, text: "" })),
    ...options.flatMap(({ short, long, description }) =>
      [short, long].flatMap((word) => (word ? [{ word, text: description }] : [])),
    ),
  ];
}

function valuesOf({ flags, argChoices = [] }: Option): readonly string[] {
  return flags.includes("<path>") ? [anyPath] : argChoices;
}

/** None, if the service cannot be asked. */
async function projectNames(env: NodeJS.ProcessEnv): Promise<readonly string[]> {
  const { accessService } = await import("./service-access.ts");
  const list = accessService(env, {}).call("projects", {});
  return await list.then(
    ({ projects }) => projects.map(({ name }) => name),
    () => [],
  );
}

/** The text is cut after its first phrase, to fit a list. */
function lineOf({ word, text }: Candidate, separator: string | undefined): string {
  const [phrase = ""] = text.split(/[.;:\n]| \(/);
  return separator === undefined || phrase === "" ? word : word + separator + phrase;
}
