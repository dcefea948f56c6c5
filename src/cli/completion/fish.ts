import type { Node, OptionNode } from "./tree.ts";

/** The script for fish; to be put into its directory of completions, or to be sourced. */
export function fishScript(nodes: readonly Node[]): string {
  const trails = nodes.filter(({ trail }) => trail !== "").map(({ trail }) => `'${trail}'`);
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
${nodes.flatMap(linesOf).join("\n")}
`;
}

function linesOf({ trail, commands, options, choices }: Node): readonly string[] {
  const start = `complete -c hotpush -n '__hotpush_at "${trail}"'`;
  return [
    ...commands.map(({ word, text }) => `${start} -a ${word} -d '${text}'`),
    ...(choices.length > 0 ? [`${start} -a '${choices.join(" ")}'`] : []),
    ...options.map((option) => `${start} ${flagsOf(option)} -d '${option.text}'`),
  ];
}

function flagsOf({ short, long, value }: OptionNode): string {
  const names = [...(short === null ? [] : [`-s ${short.slice(1)}`]), `-l ${long.slice(2)}`].join(" ");
  if (value.kind === "none") return names;
  return value.kind === "path" ? `${names} -r -F` : `${names} -x -a '${value.choices.join(" ")}'`;
}
