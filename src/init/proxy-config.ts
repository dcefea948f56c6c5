import type { Front } from "./reverse-proxy.ts";

export const caddyfileName = "hotpush.Caddyfile";

/** The services whose live files are there from the start. */
export function seededServices(front: Exclude<Front, { kind: "none" }>): readonly string[] {
  const behind = front.kind === "new-caddy" ? [front.service] : front.services;
  return front.kind === "other-proxy" || front.kind === "traefik" ? ["hotpush"] : [...behind, "hotpush"];
}

/** The configuration of the Caddy that is put in front of the app. */
export function caddyfile({ service, target }: Extract<Front, { kind: "new-caddy" }>): string {
  return `# Written by \`hotpush init\`; running that again keeps it up to date. SITE is in .env.
{
	# A socket that Hotpush reaches through the shared volume; a port could be reached by every container.
	admin unix//run/live/admin.sock|0660
	grace_period 30s
}

{$SITE} {
	# A live file holds the name of the container that gets the requests. It is read on each one, so that Caddy is
	# never reloaded: a reload would cut connections.
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

	# Where the files name nothing that runs. Only requests that reached no container are sent on: one that was cut
	# off may have done its work already.
	handle_errors 502 503 {
		@unreached expression \`{err.message}.contains("dial")\`
		handle @unreached {
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

/** What to put into a proxy's configuration that is the project's own; a line each. */
export function proxyAdvice(front: Exclude<Front, { kind: "new-caddy" | "none" }>): readonly string[] {
  switch (front.kind) {
    case "caddy": {
      const [app = "app"] = front.services;
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
      ];
    }
    case "traefik":
      return [
        "compose.hotpush.yaml gives Hotpush the labels of a router for /webhook.",
        "To each service that is rolled out, give the label:  hotpush.rollout: scale",
      ];
    case "other-proxy":
      return [
        "Pass /webhook on to hotpush:9000. With nginx, which looks a name that is",
        "written in proxy_pass up once, when it starts:",
        "  location = /webhook {",
        "    resolver 127.0.0.11 valid=1s;",
        "    set $hotpush http://hotpush:9000;",
        "    proxy_pass $hotpush;",
        // While a deployment replaces Hotpush, the name leads to the old and the new one; a push that one of them was given
        // already is known to the other.
        "    proxy_next_upstream error timeout non_idempotent;",
        "    client_max_body_size 25m;",
        "    proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;",
        "  }",
        "Do the same for the app: each deployment gives it another address.",
      ];
  }
}

/** For so long a request is held up while nobody can be connected to, instead of being answered by an error. */
function waiting(duration: string): readonly string[] {
  return [`    lb_try_duration ${duration}`, "    lb_try_interval 50ms"];
}
