/** The version of the API (see docs/design/rules.md#version). */
export const apiVersion = '1.0.0'
