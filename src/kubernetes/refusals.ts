import { z } from "zod";
import { exitCodes, KcoreError, type Problem } from "#errors/problem.ts";
import { clipText, clipLines } from "./clip.ts";
import { describeTarget, type ApiCall, type ApiTarget } from "./target.ts";

/** An API server's answer to a request that it does not carry out (meta/v1 Status). */
export const KubeStatus = z.looseObject({
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
export type KubeStatus = z.output<typeof KubeStatus>;

interface KubeRequest {
  readonly server: string;
  readonly verb: ApiCall["verb"];
  readonly target?: ApiTarget | undefined;
}

/** The API server answered with a status outside of 2xx. pollUntil asks again after 429 and 5xx. */
export class KubeRefusal extends KcoreError {
  readonly status: number;
  readonly answer: KubeStatus;

  constructor(given: KubeStatus, request: KubeRequest) {
    const answer = { ...given, message: clipText(given.message) };
    super(refusalProblem(answer, request), { exitCode: exitCodes.failed });
    this.status = answer.code;
    this.answer = answer;
  }

  get causes(): NonNullable<NonNullable<KubeStatus["details"]>["causes"]> {
    return this.answer.details?.causes ?? [];
  }
}

/** KUBERNETES_UNREACHABLE: the API server did not answer. pollUntil asks again. */
export class Unreachable extends KcoreError {}

/** The maximum number of characters of a field manager's name. */
const MANAGER_LENGTH = 128;

/** Error codes of Node.js for a failed TLS handshake: an untrusted certificate, or a server that does not speak TLS. */
const TLS_CODES = /^(ERR_TLS_|ERR_SSL_|CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|INVALID_CA|HOSTNAME_MISMATCH|EPROTO)/;

/** The error of a request without an answer: KUBERNETES_UNTRUSTED, or {@link Unreachable}. */
export function unreachableError(server: string, error: unknown): KcoreError {
  const { code = "", message } = error as NodeJS.ErrnoException;
  // For a name with several addresses Node.js throws one error with the errors of all of them.
  const [first] = error instanceof AggregateError ? (error.errors as Error[]) : [];
  const reason = (first?.message ?? message).trim();
  if (TLS_CODES.test(code))
    return new KcoreError(
      {
        code: "KUBERNETES_UNTRUSTED",
        message: `there is no trusted TLS connection to ${server}: ${reason}`,
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

/** KUBERNETES_OVERFLOW: an answer beyond kcore's limits. pollUntil does not ask again. */
export function overflowError(server: string, what: string): KcoreError {
  return new KcoreError(
    {
      code: "KUBERNETES_OVERFLOW",
      message: `the API server ${server} sends ${what}`,
      hint: "check which server answers there: kcore reads no more of the answer",
    },
    { exitCode: exitCodes.failed },
  );
}

function refusalProblem(answer: KubeStatus, { server, verb, target }: KubeRequest): Problem {
  const what = target ? describeTarget(target) : "the API";
  switch (answer.code) {
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
        detail: answer.message,
        hint: target ? rbacHint(verb, target) : undefined,
      };
    case 409:
      return answer.details?.causes?.some(({ reason }) => reason === "FieldManagerConflict") === true
        ? fieldConflict(answer, what)
        : { code: "KUBERNETES_REFUSED", message: `${server} did not ${verb} ${what}`, detail: answer.message };
    default:
      return { code: "KUBERNETES_REFUSED", message: `${server} did not ${verb} ${what}`, detail: answer.message };
  }
}

/** The problem of fields that other field managers own. */
function fieldConflict({ details }: KubeStatus, what: string): Problem {
  const owners = new Map<string, string[]>();
  for (const { reason, message, field = "" } of details?.causes ?? [])
    if (reason === "FieldManagerConflict") {
      const owner = clipText(/"([^"]*)"/.exec(message)?.[1] ?? "somebody", MANAGER_LENGTH);
      owners.set(owner, [...(owners.get(owner) ?? []), field]);
    }
  return {
    code: "KUBERNETES_CONFLICT",
    message: `${what} has fields that ${clipText([...owners.keys()].map((owner) => `“${owner}”`).join(" and "))} set otherwise`,
    detail: clipLines([...owners].flatMap(([owner, fields]) => fields.map((field) => clipText(`${owner}: ${field}`)))),
    hint: "take them out of the manifest, or take them over: force: true",
  };
}

function rbacHint(verb: ApiCall["verb"], { apiVersion, resource, subresource }: ApiTarget): string {
  const group = apiVersion.includes("/") ? apiVersion.split("/")[0] : '""';
  const named = subresource === undefined ? resource : `${resource}/${subresource}`;
  return `its role needs: apiGroups: [${group}], resources: [${named}], verbs: [${verb}]`;
}
