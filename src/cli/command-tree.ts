import type { Command, Option } from "commander";

/** What can follow one command: `trail` is its words after `hotpush`, each after a space, so "" is the program. */
export interface CommandNode {
  readonly trail: string;
  readonly commands: readonly CompletionWord[];
  readonly options: readonly OptionNode[];
  /** The known values of its arguments. */
  readonly choices: readonly string[];
}

export interface CompletionWord {
  readonly word: string;
  readonly text: string;
}

export interface OptionNode {
  readonly short: string | null;
  readonly long: string;
  readonly text: string;
  /** What it takes: nothing, the path of a file, or something else, with the values that are known. */
  readonly value: "none" | "path" | readonly string[];
}

/** All commands of a program, each after its parent. */
export function describeProgram(program: Command): readonly CommandNode[] {
  return describe(program, "");
}

function describe(command: Command, trail: string): readonly CommandNode[] {
  const { commands, options, registeredArguments } = command;
  const node = {
    trail,
    commands: commands.map((one) => ({
      word: one.name(),
      text: firstPhrase(one.summary() || one.description()),
    })),
    options: [...options.map(describeOption), help],
    choices: registeredArguments.flatMap(({ argChoices }) => argChoices ?? []),
  };
  return [node, ...commands.flatMap((one) => describe(one, `${trail} ${one.name()}`))];
}

const help: OptionNode = { short: "-h", long: "--help", text: "show help", value: "none" };

function describeOption(option: Option): OptionNode {
  const { short = null, long, flags, description } = option;
  return { short, long: long ?? flags, text: firstPhrase(description), value: takenBy(option) };
}

function takenBy({ flags, argChoices, required, optional }: Option): OptionNode["value"] {
  if (!required && !optional) return "none";
  return flags.includes("<path>") ? "path" : (argChoices ?? []);
}

/** Short enough for a list, and without characters that a shell interprets. */
function firstPhrase(text: string): string {
  const [phrase = ""] = text.split(/[.;:\n]| \(/);
  return phrase.replace(/['"`$\\[\]]/g, "");
}
