import { Argument, type Command } from "commander";
import { newCommand, type Surroundings } from "./command.ts";
import { bashScript } from "./completion/bash.ts";
import { fishScript } from "./completion/fish.ts";
import { describeProgram, type Node } from "./completion/tree.ts";
import { zshScript } from "./completion/zsh.ts";

const scripts: Readonly<Record<string, (nodes: readonly Node[]) => string>> = {
  bash: bashScript,
  zsh: zshScript,
  fish: fishScript,
};

/** `hotpush completion`: the script by which a shell completes what hotpush takes, made of the commands themselves. */
export function makeCompletionCommand(surroundings: Surroundings): Command {
  const summary = "Prints the script by which a shell completes commands and options of hotpush.";
  return newCommand("completion", summary, [
    "hotpush completion bash > /etc/bash_completion.d/hotpush",
    "hotpush completion zsh > ~/.zfunc/_hotpush   a directory of your fpath",
    "hotpush completion fish > ~/.config/fish/completions/hotpush.fish",
  ])
    .addArgument(new Argument("<shell>").choices(Object.keys(scripts)))
    .action(async (shell: string) => {
      // Not above: it has this command in its table.
      const { loadProgram } = await import("./command-line.ts");
      const nodes = describeProgram(await loadProgram(surroundings));
      process.stdout.write(scripts[shell]?.(nodes) ?? "");
      surroundings.finish(0);
    });
}
