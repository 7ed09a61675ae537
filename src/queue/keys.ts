/** The prefix of all that kcore keeps in Redis; the queues of BullMQ have it, too. */
export const PREFIX = "kcore";

/** Names in Redis. */
export const keys = {
  /** The number of the part of the run, while its coordinator lives. */
  run: (run: string) => `${PREFIX}:run:${run}`,
  /** The sealed package of a part of a run. */
  package: (run: string, part: number) => `${PREFIX}:run:${run}:${part}:package`,
  /** The stream of the workers' messages to the coordinator. */
  reports: (run: string, part: number) => `${PREFIX}:run:${run}:${part}:reports`,
  /** The sealed archive of a project. */
  project: (hash: string) => `${PREFIX}:project:${hash}`,
  /** The set of the workers' process ids. */
  workers: `${PREFIX}:workers`,
  /** A worker's signed description, while it lives. */
  worker: (id: string) => `${PREFIX}:worker:${id}`,
  /** The stream of the coordinators' messages to a worker. */
  commands: (worker: string) => `${PREFIX}:worker:${worker}:commands`,
} as const;

/** Seconds after which a coordinator or worker that does not renew its mark counts as dead. */
export const ALIVE_SECONDS = 15;
/** Milliseconds between two renewals. */
export const RENEW_MS = 4_000;
/** Seconds after which forgotten streams, packages and archives vanish. */
export const KEPT_SECONDS = 86_400;
