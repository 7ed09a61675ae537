import type { AuthHandlerMiddleware, KeyboardInteractiveAuthMethod } from "ssh2";
import type { Authentication } from "./authentication.ts";

/**
 * An authentication by one password, given once, by the method “password” (RFC 4252, section 8). Where there is only
 * “keyboard-interactive” (RFC 4256), it answers the single question, unless the typed answer would be shown. For `admitKey` alone.
 */
export function authenticateByPassword(user: string, password: string): Authentication {
  let isGiven = false;
  const ask: KeyboardInteractiveAuthMethod = {
    type: "keyboard-interactive",
    username: user,
    prompt: (_name, _instructions, _language, prompts, finish) => {
      const isPassword = !isGiven && prompts.length === 1 && prompts[0]?.echo !== true;
      // Some servers end with a round without questions.
      if (isPassword) isGiven = true;
      finish(prompts.map(() => (isPassword ? password : "")));
    },
  };
  const handler: AuthHandlerMiddleware = (methods, partialSuccess, next) => {
    state.partial ||= partialSuccess === true;
    // A request by the method “none” makes the server list its methods (RFC 4252, section 5.2).
    if (!methods) return next({ type: "none", username: user });
    state.methods = methods as readonly string[];
    const method =
      state.tried.length > 0
        ? undefined
        : ["password", "keyboard-interactive"].find((one) => state.methods.includes(one));
    if (method === undefined) {
      state.exhausted = true;
      return next(false as never);
    }
    state.tried.push(method);
    next(method === "password" ? { type: "password", username: user, password } : ask);
  };
  const state: Authentication = {
    offers: "password",
    tried: [],
    unoffered: 0,
    methods: [],
    partial: false,
    exhausted: false,
    handler,
  };
  return state;
}
