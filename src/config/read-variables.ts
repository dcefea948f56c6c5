export type Environment = Readonly<Record<string, string | undefined>>;

/** One variable: how its text is read, and the error if it cannot be. */
export interface Variable<Value> {
  readonly fallback: (env: Environment) => string;
  readonly expected: string;
  /** null: not as expected */
  readonly read: (text: string) => Value | null;
}

type Values<Table extends Readonly<Record<string, Variable<unknown>>>> = {
  readonly [Name in keyof Table]: NonNullable<ReturnType<Table[Name]["read"]>>;
};

/**
 * Reads every variable of `table` from `env`.
 *
 * @param faults gets a sentence for each value that is not as expected; the values may only be used if there is none
 */
export function readVariables<Table extends Readonly<Record<string, Variable<unknown>>>>(
  table: Table,
  env: Environment,
  faults: string[],
): Values<Table> {
  const entries = Object.entries(table).map(([name, variable]) => {
    const text = env[name] ? env[name].trim() : variable.fallback(env);
    const value = variable.read(text);
    if (value === null) faults.push(`${name} is ${JSON.stringify(text)}; expected ${variable.expected}.`);
    return [name, value];
  });
  return Object.fromEntries(entries) as Values<Table>;
}
