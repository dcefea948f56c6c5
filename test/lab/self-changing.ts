/** Each deployment changes the configuration of Hotpush itself, and nothing else. */
export const script = `#!/bin/sh
set -e
sed -i "s/^MARK=.*/MARK=$DEPLOY_ID/" .env
hotpush rollout
sleep "$(cat linger 2>/dev/null || echo 0)"
`;

/** Longer than a stopping service lets a script run. */
export const lingerS = "7";

/** Hotpush in compose.override.yaml: MARK is part of its configuration. */
export const marked = { labels: { mark: `\${MARK}` } };
