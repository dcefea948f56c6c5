import { caddyMount, liveMount, receiveAlias, serviceAlias } from "../config/machine-part.ts";
import { answerLines, countingLines, indented } from "../rollout/requests/caddy-lines.ts";

/** The text of the machine part's Caddyfile: what the sites of all projects import. */
export function machineCaddyfile(): string {
  return `# Caddy of this machine, for all projects: written by \`hotpush init\`, and yours to change. Their sites are in sites/.
# \`run\` loads a change of these files within a second or two. If Caddy rejects it, the old configuration stays in force.
{
	# A socket that only root and users of Docker reach; a port could be reached by every container.
	admin unix/${liveMount}/admin.sock|0666
	grace_period 30s
}

# import service <project> <service> <port>
(service) {
	# The live file holds the name of the container that gets the requests. Caddy reads it on each one, so that a roll-out
	# needs no reload: a reload would cut connections.
	reverse_proxy {file.${liveMount}/{args[0]}/{args[1]}}:{args[2]} {
		lb_try_duration 5s
		lb_try_interval 50ms
	}

	import counted {args[0]}

	# Before a reload, \`run\` makes clients close their kept connections.
	@closing vars {file.${liveMount}/closing} yes
	header @closing Connection close

	# If the live file names nothing that runs. Only requests that reached no container are sent on: one that was cut off
	# may have done its work already.
	handle_errors 502 503 {
		@unreached {
			expression \`{err.message}.contains("dial")\`
			not path /webhook /webhook/{args[0]}
		}
${indented(
  answerLines.map((line) => line.replace(" ", " @unreached ")),
  2,
)}
		reverse_proxy @unreached ${serviceAlias("{args[1]}", "{args[0]}")}:{args[2]} {
			lb_try_duration 10s
			lb_try_interval 50ms
		}
	}
}

# import counted <project>: a roll-out counts the requests by this log, which has nothing that identifies a person.
(counted) {
${indented(countingLines(liveMount, "{args[0]}"), 1)}
	# The line with log_skip is also about other logs of the site. Without it, all requests are logged at all times.
}

# import deliveries <project>: /webhook of a site gets the deliveries of the project's git host.
(deliveries) {
	@deliveries path /webhook /webhook/{args[0]}
	handle @deliveries {
		rewrite /webhook/{args[0]}
		import receive
	}
}

(receive) {
	# While \`receive\` restarts, a delivery waits instead of being lost: git hosts send it once and wait for 10 s.
	reverse_proxy ${receiveAlias}:9000 {
		lb_try_duration 9s
		lb_try_interval 50ms
		transport http {
			# On a kept connection that is just closing, a delivery would be cut off, and a POST is not sent twice.
			keepalive off
		}
	}
}

# Every other host: a machine without a name receives deliveries at http://<its address>/webhook/<project>.
http:// {
	@delivery path_regexp ^/webhook/[a-z0-9-]+$
	handle @delivery {
		import receive
	}
	handle {
		respond "No project of this machine has this address." 404
	}
}

https:// {
	respond "No project of this machine has this address." 404
}

import ${caddyMount}/sites/*.caddy
`;
}
