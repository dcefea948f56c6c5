/** Node's HTTP without what `import` of `node:http` drags in (see receiver/http.ts): a command must answer at once too. */
export const { createServer, request } = process.getBuiltinModule("node:http");
