import type { Transport } from "#engine/transport/connect.ts";
import type { HostKey } from "#engine/transport/host-key.ts";
import type { Host } from "#engine/transport/host.ts";
import { LoginRefused } from "#engine/transport/unreachable.ts";
import { KcoreError } from "#errors/problem.ts";
import type { MachineFlags } from "../options.ts";
import { passwordOf } from "../terminal/confirm.ts";
import { wayTo, type Machine } from "./find-machine.ts";

/**
 * A connection to a machine whose key was verified. If the machine accepts no key of ours and a password was offered,
 * one login by password installs our key; later logins use keys alone. @throws KcoreError QUESTION_UNANSWERED,
 * FILE_UNREADABLE, FILE_UNTRUSTED, KEY_NOT_ADMITTED, and those of a connection
 */
export async function logIn(
  machine: Machine,
  transport: Transport,
  key: HostKey,
  { askPassword, passwordFile }: Pick<MachineFlags, "askPassword" | "passwordFile">,
): Promise<Host> {
  const { name, user } = machine.entry;
  const endpoint = { ...wayTo(machine), hostKeys: [`${key.type} ${key.key}`] };
  try {
    return await transport.connect(endpoint);
  } catch (error) {
    // A jump host's refusal, two factors, or a missing key of ours have other remedies.
    if (!(error instanceof LoginRefused) || error.host !== endpoint.name) throw error;
    if (passwordFile === undefined && askPassword !== true) throw withAdvice(error);
  }
  const password = await passwordOf(`${user} of ${name}`, passwordFile);
  const { label } = await transport.admitKey(endpoint, { password });
  process.stderr.write(`${name} lets ${user} in with ${label} from now on: the password was used once\n`);
  return transport.connect(endpoint);
}

function withAdvice(error: KcoreError): KcoreError {
  const advice = "--ask-password puts it there";
  return new KcoreError(
    error.problems.map((problem) => ({
      ...problem,
      hint: problem.hint === undefined ? advice : `${problem.hint} ${advice}`,
    })),
    { cause: error, exitCode: error.exitCode },
  );
}
