/**
 * Every code that a user can meet. A code is stable: scripts may match on it, `docs/errors.md` explains it.
 * Name: THING_WHAT, upper snake case.
 */
export type ErrorCode =
  | "USAGE"
  | "INTERNAL"
  | "FILE_UNREADABLE"
  | "FILE_TOO_LARGE"
  | "PROJECT_NOT_FOUND"
  | "PROJECT_NOT_TRUSTED"
  | "YAML_SYNTAX"
  | "YAML_TYPE"
  | "YAML_UNSUPPORTED"
  | "HOST_UNREACHABLE"
  | "HOST_KEY_UNKNOWN"
  | "HOST_KEY_CHANGED"
  | "INTERRUPTED";
