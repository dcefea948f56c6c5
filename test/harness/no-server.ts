/** For commands of tests: the server that this machine may have is not theirs. */
export const noServer = { SERVER_PATH: "/hotpush-test/no-server" } as const;
