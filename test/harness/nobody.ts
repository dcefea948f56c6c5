/** The user and the group that own nothing, on any Debian. */
export const nobody = 65_534;

/** A prefix that runs a command line as them. */
export const becomeNobody = ["setpriv", `--reuid=${nobody}`, `--regid=${nobody}`, "--clear-groups"] as const;
