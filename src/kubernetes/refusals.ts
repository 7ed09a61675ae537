import { z } from "zod";
import { exitCodes, KcoreError, type Problem } from "#errors/problem.ts";
import { clip, clipLines } from "./clip.ts";
import { namedIn, type Call, type Target } from "./target.ts";

/** An API server's answer to a request that it does not carry out (meta/v1 Status). */
export const Status = z.looseObject({
  code: z.number().default(0),
  message: z.string().default(""),
  reason: z.string().optional(),
  details: z
    .looseObject({
      causes: z
        .array(
          z.looseObject({
            reason: z.string().optional(),
            message: z.string().default(""),
            field: z.string().optional(),
          }),
        )
        .nullish(),
    })
    .nullish(),
});
export type Status = z.output<typeof Status>;

interface KubeRequest {
  readonly server: string;
  readonly verb: Call["verb"];
  readonly target?: Target | undefined;
}

/** The API server understood the request and refused it. */
export class KubeRefusal extends KcoreError {
  readonly status: number;
  readonly said: Status;

  constructor(given: Status, asked: KubeRequest) {
    const said = { ...given, message: clip(given.message) };
    super(problemOf(said, asked), { exitCode: exitCodes.failed });
    this.status = said.code;
    this.said = said;
  }

  get causes(): NonNullable<NonNullable<Status["details"]>["causes"]> {
    return this.said.details?.causes ?? [];
  }
}

/** No answer came: the server is down, somewhere else, or cannot be reached from here. */
export class Unreachable extends KcoreError {}

/** Characters that a field manager's name has at most. */
const NAME = 128;

/** Codes of Node's TLS for a server that is not the one of the kubeconfig. */
const UNTRUSTED = /^(ERR_TLS_|ERR_SSL_|CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|INVALID_CA|HOSTNAME_MISMATCH|EPROTO)/;

export function unreachable(server: string, error: unknown): KcoreError {
  const { code = "", message } = error as NodeJS.ErrnoException;
  // For a name with several addresses Node throws one error with the errors of all of them.
  const [first] = error instanceof AggregateError ? (error.errors as Error[]) : [];
  const reason = (first?.message ?? message).trim();
  if (UNTRUSTED.test(code))
    return new KcoreError(
      {
        code: "KUBERNETES_UNTRUSTED",
        message: `the server at ${server} is not trusted: ${reason}`,
        hint: "compare certificate-authority and tls-server-name of the kubeconfig with the cluster's; the address may belong to another one",
      },
      { cause: error, exitCode: exitCodes.failed },
    );
  return new Unreachable(
    {
      code: "KUBERNETES_UNREACHABLE",
      message: `the API server ${server} does not answer: ${reason}`,
      hint: "check that it runs, and that this machine reaches it",
    },
    { cause: error, exitCode: exitCodes.failed },
  );
}

/** An answer beyond kcore's limits; a wait ends with this error instead of asking again. */
export function overflow(server: string, what: string): KcoreError {
  return new KcoreError(
    {
      code: "KUBERNETES_OVERFLOW",
      message: `the API server ${server} sends ${what}`,
      hint: "check which server answers there: kcore reads no more of the answer",
    },
    { exitCode: exitCodes.failed },
  );
}

function problemOf(said: Status, { server, verb, target }: KubeRequest): Problem {
  const what = target ? namedIn(target) : "the API";
  switch (said.code) {
    case 401:
      return {
        code: "KUBERNETES_UNAUTHORIZED",
        message: `${server} does not accept the kubeconfig's credentials`,
        hint: "the token or certificate may have expired, or belong to another cluster",
      };
    case 403:
      return {
        code: "KUBERNETES_FORBIDDEN",
        message: `the kubeconfig's user may not ${verb} ${what}`,
        detail: said.message,
        hint: target ? ruleFor(verb, target) : undefined,
      };
    case 409:
      return said.details?.causes?.some(({ reason }) => reason === "FieldManagerConflict") === true
        ? conflict(said, what)
        : { code: "KUBERNETES_REFUSED", message: `${server} did not ${verb} ${what}`, detail: said.message };
    default:
      return { code: "KUBERNETES_REFUSED", message: `${server} did not ${verb} ${what}`, detail: said.message };
  }
}

/** The managers that own the fields to be written. */
function conflict({ details }: Status, what: string): Problem {
  const owners = new Map<string, string[]>();
  for (const { reason, message, field = "" } of details?.causes ?? [])
    if (reason === "FieldManagerConflict") {
      const owner = clip(/"([^"]*)"/.exec(message)?.[1] ?? "somebody", NAME);
      owners.set(owner, [...(owners.get(owner) ?? []), field]);
    }
  return {
    code: "KUBERNETES_CONFLICT",
    message: `${what} has fields that ${clip([...owners.keys()].map((owner) => `“${owner}”`).join(" and "))} set otherwise`,
    detail: clipLines([...owners].flatMap(([owner, fields]) => fields.map((field) => clip(`${owner}: ${field}`)))),
    hint: "take them out of the manifest, or take them over: force: true",
  };
}

function ruleFor(verb: Call["verb"], { apiVersion, resource, subresource }: Target): string {
  const group = apiVersion.includes("/") ? apiVersion.split("/")[0] : '""';
  const named = subresource === undefined ? resource : `${resource}/${subresource}`;
  return `its role needs: apiGroups: [${group}], resources: [${named}], verbs: [${verb}]`;
}
