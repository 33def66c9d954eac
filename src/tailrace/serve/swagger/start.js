// Opens the OpenAPI document of this box in Swagger UI; a file of its own because the page allows no
// inline script.
SwaggerUIBundle({ url: "openapi.json", dom_id: "#swagger-ui", deepLinking: true, validatorUrl: null });
