import { Argument, type Command } from "commander";
import { type CommandContext, newCommand, print } from "./command.ts";

export const commands = { completion: makeCompletionCommand };

/**
 * What a shell sources: it asks `hotpush completion <shell> -- <words>` what can follow the words before the cursor. If
 * nothing that is known fits, it completes files.
 */
const scripts: Readonly<Record<string, string>> = {
  bash: `# bash completion of hotpush, made by: hotpush completion bash
_hotpush() {
  local found
  found=$(hotpush completion bash -- "\${COMP_WORDS[@]:0:COMP_CWORD}" 2>/dev/null)
  mapfile -t COMPREPLY < <(compgen -W "$found" -- "\${COMP_WORDS[COMP_CWORD]}")
}
complete -o default -F _hotpush hotpush
`,
  zsh: `#compdef hotpush
# zsh completion of hotpush, made by: hotpush completion zsh
_hotpush() {
  local -a candidates
  candidates=(\${(f)"$(hotpush completion zsh -- "\${(@)words[1,CURRENT-1]}" 2>/dev/null)"})
  compadd -a candidates || _files
}
if [ "$funcstack[1]" = "_hotpush" ]; then _hotpush "$@"; else compdef _hotpush hotpush; fi
`,
  fish: `# fish completion of hotpush, made by: hotpush completion fish
function __hotpush_complete
    set -l found (hotpush completion fish -- (commandline -opc) 2>/dev/null)
    if not string match -q -- (commandline -ct)"*" $found
        __fish_complete_path (commandline -ct)
    else
        printf '%s\\n' $found
    end
end
complete -c hotpush -f -a '(__hotpush_complete)'
`,
};

/** `hotpush completion`: prints a completion script or, for that script, what can follow the words of a command line. */
function makeCompletionCommand({ finish }: CommandContext): Command {
  const description = "Print the script with which a shell completes the commands and options of hotpush.";
  return newCommand("completion", description, [
    "hotpush completion bash > /etc/bash_completion.d/hotpush",
    "hotpush completion zsh > ~/.zfunc/_hotpush   a directory of your fpath",
    "hotpush completion fish > ~/.config/fish/completions/hotpush.fish",
  ])
    .addArgument(new Argument("<shell>").choices(Object.keys(scripts)))
    .argument("[words...]", "after --: print what can follow them on a command line")
    .action((shell: string, words: readonly string[], _options: object, { parent }: Command) => {
      if (words.length === 0) process.stdout.write(scripts[shell] ?? "");
      else if (parent) print(...candidates(parent, words));
      finish(0);
    });
}

/** The subcommands, values and options that can follow `words`; if the last of them takes a value, only that. */
function candidates(program: Command, words: readonly string[]): readonly string[] {
  let command = program;
  for (const word of words) command = command.commands.find((one) => one.name() === word) ?? command;
  const options = command.createHelp().visibleOptions(command);
  const last = options.find(({ short, long }) => words.length > 0 && [short, long].includes(words.at(-1)));
  if (last && (last.required || last.optional)) return last.argChoices ?? [];
  return [
    ...command.commands.map((one) => one.name()),
    ...command.registeredArguments.flatMap(({ argChoices = [] }) => argChoices),
    ...options.flatMap(({ short, long }) => [short, long].filter((word) => word !== undefined)),
  ];
}
