import type { Command, Option } from "commander";

/** What can follow one command: `trail` is its words after `hotpush`, each behind a space, so "" is the program. */
export interface Node {
  readonly trail: string;
  readonly commands: readonly Word[];
  readonly options: readonly OptionNode[];
  /** What its arguments can be, where that is known. */
  readonly choices: readonly string[];
}

export interface Word {
  readonly word: string;
  readonly text: string;
}

export interface OptionNode {
  readonly short: string | null;
  readonly long: string;
  readonly text: string;
  readonly value: Value;
}

/** What an option takes: nothing, the path of a file, or something else, of which a few words may be known. */
export type Value =
  | { readonly kind: "none" }
  | { readonly kind: "path" }
  | { readonly kind: "text"; readonly choices: readonly string[] };

/** All commands of a program, each after the one it belongs to. */
export function describeProgram(program: Command): readonly Node[] {
  return describe(program, "");
}

function describe(command: Command, trail: string): readonly Node[] {
  const { commands } = command;
  const node = {
    trail,
    commands: commands.map((one) => ({
      word: one.name(),
      text: firstSentence(one.summary() || one.description()),
    })),
    options: [...command.options.map(describeOption), help],
    choices: command.registeredArguments.flatMap(({ argChoices }) => argChoices ?? []),
  };
  return [node, ...commands.flatMap((one) => describe(one, `${trail} ${one.name()}`))];
}

const help: OptionNode = { short: "-h", long: "--help", text: "how it is used", value: { kind: "none" } };

function describeOption({
  short,
  long,
  flags,
  description,
  argChoices,
  required,
  optional,
}: Option): OptionNode {
  const takesValue = required || optional;
  const isPath = /<path>/.test(flags);
  const value: Value = !takesValue
    ? { kind: "none" }
    : isPath
      ? { kind: "path" }
      : { kind: "text", choices: argChoices ?? [] };
  return { short: short ?? null, long: long ?? flags, text: firstSentence(description), value };
}

/** Short enough for a list, and without what a shell would take for its own. */
function firstSentence(text: string): string {
  const [sentence = ""] = text.split(/[.;:\n]| \(/);
  return sentence.replace(/['"`$\\[\]]/g, "");
}
