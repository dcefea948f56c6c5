/** Of Docker 25: the first that knows `start_interval`, by which a new container is found healthy early. */
export const neededApi = "1.44";

/** The first whose `!reset` takes a list away that another file has given; `start_interval` came with 2.24.0. */
export const neededCompose = "2.24.4";
