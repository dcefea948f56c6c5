/** For commands of tests: the machine part that this machine may have is not theirs. */
export const noMachinePart = { MACHINE_PATH: "/hotpush-test/no-machine-part" } as const;
