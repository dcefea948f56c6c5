/** The user and the group that own nothing, on any Debian. */
export const nobody = 65_534;

/** What to put before a command line so that it runs as them. */
export const becomeNobody = ["setpriv", `--reuid=${nobody}`, `--regid=${nobody}`, "--clear-groups"] as const;
