interface Printed {
  readonly project: string;
  readonly commit: string;
  /** That the proxy counted. */
  readonly requests: number;
}

/** The lines that the deploy script of a project prints. */
export function cannedLog(isFailure: boolean, { project, commit, requests }: Printed): readonly string[] {
  return `${beginning}${isFailure ? failure : success}`
    .replaceAll("shop", project)
    .replaceAll("3f2c1a9", commit)
    .replace("12,431", requests.toLocaleString("en-US"))
    .trimEnd()
    .split("\n");
}

const beginning = `==> Pull
From github.com:acme/shop
   77a0c2e..3f2c1a9  main -> origin/main
==> Build
#1 [internal] load build definition from Dockerfile
#5 [web 1/4] FROM docker.io/library/node:24-slim
#6 [web 2/4] WORKDIR /app
\u001b[36m#7 [web 3/4] RUN npm ci --omit=dev\u001b[0m
#7 4.118 added 214 packages, and audited 215 packages in 4s
#7 4.119 found 0 vulnerabilities
#8 [web 4/4] COPY . .
#9 exporting to image
#9 naming to docker.io/library/shop-web:3f2c1a9
==> Roll out
Rolling out shop at 3f2c1a9: web, worker
  web      start      325 ms  shop-web-5
`;

const success = `  web      healthy    763 ms
\u001b[32m  web      switch       2 ms  requests now go to shop-web-5\u001b[0m
  web      drain      547 ms  no request is left in shop-web-4
  web      stop       248 ms  shop-web-4 is stopped and removed
  worker   start      210 ms  shop-worker-5
  worker   healthy    3.1 s   ran for 3 s without a restart
  worker   stop       1.2 s   shop-worker-4 is stopped and removed

\u001b[32mshop.example.com: 12,431 requests, 0 failed\u001b[0m
Done in 6.2 s.
==> Prune
  removed shop-web:0f08ae7
==> Health check
\u001b[32mGET https://shop.example.com/health 200\u001b[0m
`;

const failure = `  web      healthy     20 s   \u001b[31mnot healthy: curl: (7) Failed to connect to 127.0.0.1 port 8080\u001b[0m
    web-8  node:internal/modules/cjs/loader:1228
    web-8    throw err;
    web-8  Error: Cannot find module './queue-client'
    web-8    Require stack:
    web-8    - /app/server.js
  web      remove     248 ms  shop-web-8 is stopped and removed
\u001b[31mThe roll-out was abandoned: shop-web-8 was not healthy. The requests still go to shop-web-7.\u001b[0m
`;
