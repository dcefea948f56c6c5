import { answerLines, countingLines, indented } from "../rollout/requests/caddy-lines.ts";
import type { ReverseProxy } from "./reverse-proxy.ts";
import { isLoopback } from "./webhook-address.ts";

export const caddyfileName = "hotpush.Caddyfile";

/** The services whose live files exist from the start. */
export function seededServices(proxy: Exclude<ReverseProxy, { kind: "none" }>): readonly string[] {
  const behind = proxy.kind === "new-caddy" ? [proxy.service] : proxy.services;
  return proxy.kind === "other-proxy" || proxy.kind === "traefik" ? ["hotpush"] : [...behind, "hotpush"];
}

/** The configuration of the Caddy that `init` puts in front of the app. */
export function caddyfile({ service, target }: Extract<ReverseProxy, { kind: "new-caddy" }>): string {
  return `# Written by \`hotpush init\`; running that again keeps it up to date. SITE is in .env.
{
	# A socket that Hotpush reaches through the shared volume; a port could be reached by every container.
	admin unix//run/live/admin.sock|0660
	grace_period 30s
}

{$SITE} {
	# A live file holds the name of the container that gets the requests. Caddy reads it on each one, so it is never
	# reloaded: a reload would cut connections.
	reverse_proxy {file./run/live/${service}}:${target} {
		lb_try_duration 5s
		lb_try_interval 50ms
	}

	# While Hotpush restarts, a delivery waits instead of being lost: git hosts send it once and wait for 10 s.
	reverse_proxy /webhook {file./run/live/hotpush}:9000 {
		lb_try_duration 5s
		lb_try_interval 50ms
		transport http {
			# On a kept connection that Hotpush is just closing a delivery would be cut off, and a POST is not sent twice.
			keepalive off
		}
	}

	# Requests are logged while a roll-out counts them, without what identifies a person.
${indented(countingLines("/run/live", null), 1)}

	# If the files name nothing that runs. Only requests that reached no container are sent on: one that was cut
	# off may have done its work already.
	handle_errors 502 503 {
		@unreached expression \`{err.message}.contains("dial")\`
		handle @unreached {
${indented(answerLines, 3)}
			reverse_proxy ${service}:${target} {
				lb_try_duration 10s
			}
			reverse_proxy /webhook hotpush:9000 {
				lb_try_duration 4s
			}
		}
	}
}
`;
}

/**
 * The lines of Hotpush's service that give Traefik its routers for /webhook.
 *
 * Without a priority the longest rule wins, which would be the app's. A router takes either TLS requests or plain ones, so
 * there are two: TLS may end before Traefik.
 */
export function traefikLabels(payloadUrl: URL): readonly string[] {
  const host = isLoopback(payloadUrl) ? "" : `Host(\`${payloadUrl.hostname}\`) && `;
  const router = (name: string) => [
    `      traefik.http.routers.${name}.rule: ${host}Path(\`/webhook\`)`,
    `      traefik.http.routers.${name}.priority: "1000"`,
    `      traefik.http.routers.${name}.service: hotpush`,
  ];
  const isHttps = payloadUrl.protocol === "https:";
  return [
    "    labels:",
    '      traefik.enable: "true"',
    ...router("hotpush"),
    ...(isHttps ? [...router("hotpush-tls"), '      traefik.http.routers.hotpush-tls.tls: "true"'] : []),
    '      traefik.http.services.hotpush.loadbalancer.server.port: "9000"',
  ];
}

/** Lines for the configuration of the project's own proxy. */
export function proxyAdvice(proxy: Exclude<ReverseProxy, { kind: "new-caddy" | "none" }>): readonly string[] {
  switch (proxy.kind) {
    case "caddy": {
      const [app = "app"] = proxy.services;
      return [
        "in the block of global options:",
        "  admin unix//run/live/admin.sock|0660",
        "  grace_period 30s",
        "in the block of the site, for the app (in place of its name) and for the deliveries:",
        `  reverse_proxy {file./run/live/${app}}:<its port> {`,
        ...waiting("5s"),
        "  }",
        "  reverse_proxy /webhook {file./run/live/hotpush}:9000 {",
        // Git hosts wait for ten seconds.
        ...waiting("9s"),
        "    transport http {",
        "      keepalive off",
        "    }",
        "  }",
        "there too, so that roll-outs can count requests:",
        ...countingLines("/run/live", null).map((line) => `  ${line.replaceAll("\t", "  ")}`),
      ];
    }
    case "traefik":
      return [
        "compose.hotpush.yaml gives Hotpush the labels of a router for /webhook.",
        "To each service that is rolled out, give the label:  hotpush.rollout: scale",
      ];
    case "other-proxy":
      return [
        "Pass /webhook on to hotpush:9000. nginx resolves a name in proxy_pass only",
        "once, when it starts, so write:",
        "  location = /webhook {",
        "    resolver 127.0.0.11 valid=1s;",
        "    set $hotpush http://hotpush:9000;",
        "    proxy_pass $hotpush;",
        // While a deployment replaces Hotpush, the name resolves to the old and the new one. A push that one of them has
        // recorded is a duplicate to the other.
        "    proxy_next_upstream error timeout non_idempotent;",
        "    client_max_body_size 25m;",
        "    proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;",
        "  }",
        "Do the same for the app: each deployment gives it another address.",
      ];
  }
}

/** How long Caddy holds a request that it cannot connect, before it answers with an error. */
function waiting(duration: string): readonly string[] {
  return [`    lb_try_duration ${duration}`, "    lb_try_interval 50ms"];
}
